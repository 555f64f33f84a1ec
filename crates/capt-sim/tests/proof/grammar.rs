//! What a user can write into a spec, as the CRDs say it: a value for any field, and whether the API server
//! would take the object.
//!
//! Nothing here lists a field. A field that is added to a CRD is tried from then on.

use capt_reconcile::object::Kind;
use capt_sim::{
    apiserver::{
        ApiServer,
        resources::Version,
        schema::{Schema, Type, validate},
    },
    definitions,
    scenario::{chances::Dice, play::BEGIN},
};
use serde_json::{Map, Value, json};

/// Texts of every sort that a field may ask for; a pattern or a rule picks those that fit.
const TEXTS: [&str; 24] = [
    "",
    "demo",
    "other",
    "vpc-template",
    "eks-template",
    "kubeconfig-template",
    "missing",
    "default",
    "1.31",
    "1.32",
    "v1.31.4",
    "30s",
    "2m",
    "1h",
    "eu-west-1",
    "us-gov-west-1",
    "vpc-0abc",
    "10.0.0.0/8",
    "https://a.eks.invalid",
    "a.eks.invalid",
    "a \"quoted\" ${region} value\nof two lines",
    "{\"json\": [1, null]}",
    "true",
    "Ünïcödé",
];

/// The CRDs, as the modelled API server reads them.
pub struct Grammar {
    server: ApiServer,
}

impl Grammar {
    pub fn new() -> Self {
        Self { server: definitions::server(BEGIN).unwrap() }
    }

    fn version(&self, kind: Kind) -> &Version {
        let resource = self.server.resources().of_kind(kind.group(), kind.name()).unwrap();
        resource.version(kind.version()).unwrap()
    }

    /// A change of one field of the spec of `kind`, as a merge patch of the whole object.
    pub fn edit(&self, kind: Kind, dice: &mut Dice) -> Value {
        let spec = self.version(kind).schema.field("spec").0;
        let mut path = vec!["spec".to_owned()];
        let mut schema = spec;
        // Down to a field at any depth.
        while !schema.properties.is_empty() {
            let index = dice.below(schema.properties.len());
            let (name, field) = schema.properties.iter().nth(index).unwrap();
            path.push(name.clone());
            schema = field;
            if dice.below(4) == 0 {
                break;
            }
        }
        let value = if dice.below(4) == 0 { Value::Null } else { value(schema, dice, 3) };
        path.into_iter().rev().fold(value, |value, name| json!({name: value}))
    }

    /// Why the API server would refuse `object` in the place of `old`; empty if it takes it.
    pub fn refuses(&self, kind: Kind, object: &Value, old: &Value) -> Vec<String> {
        let Version { schema, rules, .. } = self.version(kind);
        let mut causes = validate::validate(schema, object, Some(old));
        causes.extend(rules.broken_by(object, Some(old)));
        causes.into_iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
    }

    /// How many fields of a spec there are, leaves and all above them.
    pub fn fields(&self, kind: Kind) -> usize {
        fn count(schema: &Schema) -> usize {
            let below: usize = schema.properties.values().map(|field| 1 + count(field)).sum();
            below + [&schema.items, &schema.additional].into_iter().flatten().map(|inner| count(inner)).sum::<usize>()
        }
        count(self.version(kind).schema.field("spec").0)
    }
}

/// A value that `schema` describes, mostly.
fn value(schema: &Schema, dice: &mut Dice, depth: usize) -> Value {
    if !schema.values.is_empty() {
        return schema.values[dice.below(schema.values.len())].clone();
    }
    match schema.type_ {
        Type::Boolean => json!(dice.below(2) == 0),
        Type::Integer | Type::Number | Type::IntOrString => integer(schema, dice),
        Type::String => {
            let fits = |text: &&&str| schema.pattern.as_ref().is_none_or(|pattern| pattern.is_match(text));
            let texts: Vec<&&str> = TEXTS.iter().filter(fits).collect();
            texts.get(dice.below(texts.len())).map_or(Value::Null, |text| json!(text))
        }
        Type::Array => {
            let items = if depth == 0 { 0 } else { dice.below(3) };
            Value::Array((0..items).map(|_| value(schema.item(), dice, depth - 1)).collect())
        }
        Type::Object | Type::Any => {
            let mut fields = Map::new();
            for (name, field) in &schema.properties {
                if schema.required.contains(name) || (depth > 0 && dice.below(2) == 0) {
                    fields.insert(name.clone(), value(field, dice, depth.saturating_sub(1)));
                }
            }
            if let (Some(additional), true) = (&schema.additional, depth > 0) {
                for _ in 0..dice.below(3) {
                    let name = ["Owner", "cost-centre", "confirm"][dice.below(3)];
                    fields.insert(name.to_owned(), value(additional, dice, depth - 1));
                }
            }
            Value::Object(fields)
        }
    }
}

#[allow(clippy::cast_possible_truncation)] // bounds of 32-bit fields
fn integer(schema: &Schema, dice: &mut Dice) -> Value {
    let (least, most) = (schema.range.0.map(|bound| bound as i64), schema.range.1.map(|bound| bound as i64));
    let few = [least.unwrap_or(0), 1, 2, 5, 30, 443];
    json!(few[dice.below(few.len())].min(most.unwrap_or(i64::MAX)).max(least.unwrap_or(0)))
}
