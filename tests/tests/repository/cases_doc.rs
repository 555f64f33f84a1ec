//! docs/cases.md names exactly the tests that there are.

use std::{collections::BTreeMap, fs, path::Path};

/// How many cases the bank has.
const CASES: usize = 115;

/// A row of the table.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    case: u16,
    what: String,
    /// The file with the test, or why the case cannot apply.
    place: Result<String, String>,
}

fn rows(document: &str) -> Vec<Row> {
    let row = |line: &str| {
        let fields: Vec<&str> = line.strip_prefix("| CB-")?.split(" | ").collect();
        let [case, what, place] = fields[..] else { panic!("not three fields: {line}") };
        let place = place.trim_end_matches(" |");
        let file = place.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
        Some(Row {
            case: case.parse().unwrap(),
            what: what.to_owned(),
            place: file.map(str::to_owned).ok_or_else(|| place.to_owned()),
        })
    };
    document.lines().filter_map(row).collect()
}

/// Cases of the tests in `text`.
fn tests(text: &str) -> Vec<u16> {
    let after = text.split("fn cb_").skip(1);
    after.filter_map(|rest| rest.split_once('_')).filter_map(|(case, _)| case.parse().ok()).collect()
}

/// What does not fit; `tests` says of each file of which cases it has tests.
fn faults(rows: &[Row], tests: &BTreeMap<String, Vec<u16>>) -> Vec<String> {
    let mut faults = Vec::new();
    if !rows.is_sorted_by(|one, next| one.case < next.case) {
        faults.push("not in order, or twice".to_owned());
    }
    for Row { case, what, place } in rows {
        let of_case = tests.values().flatten().filter(|found| *found == case).count();
        match place {
            _ if what.trim().is_empty() => faults.push(format!("CB-{case:03} says nothing")),
            Ok(file) if !tests.get(file).is_some_and(|found| found.contains(case)) => {
                faults.push(format!("CB-{case:03} has no test in {file}"));
            }
            Err(reason) if reason.split_whitespace().count() < 4 => {
                faults.push(format!("CB-{case:03} has neither a test nor a reason"));
            }
            Err(_) if of_case > 0 => faults.push(format!("CB-{case:03} cannot apply and has a test")),
            Ok(_) | Err(_) => {}
        }
    }
    for case in tests.values().flatten() {
        if !rows.iter().any(|row| row.case == *case) {
            faults.push(format!("the test of CB-{case:03} is not in the table"));
        }
    }
    faults
}

#[test]
fn the_table_names_exactly_the_tests_that_there_are() {
    let root = capt_tests::root();
    let mut found = Vec::new();
    for directory in ["crates", "bins", "tests/tests"] {
        found.extend(capt_tests::sources(&root.join(directory)).unwrap());
    }
    let own = Path::new(file!()).file_name();
    found.retain(|path| path.file_name() != own);
    let tests: BTreeMap<String, Vec<u16>> = found
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
            (name, tests(&fs::read_to_string(&path).unwrap()))
        })
        .filter(|(_, cases)| !cases.is_empty())
        .collect();
    let rows = rows(&fs::read_to_string(root.join("docs/cases.md")).unwrap());
    assert_eq!(faults(&rows, &tests), [""; 0]);
    assert_eq!(rows.len(), CASES, "every case has its row");
}

#[test]
fn what_does_not_fit_is_seen() {
    let table = "| case | what | test |\n|---|---|---|\n| CB-001 | a | `x.rs` |\n| CB-002 | b | there is no such thing here |\n";
    let found = |text: &str, cases: &[u16]| faults(&rows(text), &BTreeMap::from([("x.rs".to_owned(), cases.to_vec())]));
    assert_eq!(found(table, &[1]), [""; 0]);
    assert_eq!(found(table, &[]), ["CB-001 has no test in x.rs"]);
    assert_eq!(found(table, &[1, 2]), ["CB-002 cannot apply and has a test"]);
    assert_eq!(found(table, &[1, 3]), ["the test of CB-003 is not in the table"]);
    assert_eq!(
        found(&table.replace("| there is no such thing here |", "| none |"), &[1]),
        ["CB-002 has neither a test nor a reason"]
    );
    assert_eq!(
        found(&table.replace("CB-002", "CB-001"), &[1]),
        ["not in order, or twice", "CB-001 cannot apply and has a test"]
    );
    assert_eq!(tests("#[test]\nfn cb_001_a() {}\nasync fn cb_139_b() {}"), [1, 139]);
}
