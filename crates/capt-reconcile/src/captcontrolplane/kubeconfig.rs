//! What a kubeconfig says: whether its server is reached by https, and when its token expires.
//!
//! Terraform modules for EKS bake a token into the kubeconfig, which is good for a quarter of an hour. A
//! kubeconfig with an exec plugin or a token without an end is good for ever. The text is searched and not
//! parsed as YAML: that is done in each pass. Nothing of it may reach a message.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use capt_status::{Span, Time};
use serde_json::Value;

/// What a token of EKS begins with; the rest is a signed URL.
const EKS: &str = "k8s-aws-v1.";

/// How long EKS accepts a token after it was signed, whatever the URL says.
const EKS_LIFETIME: Span = Span::from_minutes(15);

/// Whether every server that is named has a URL with https; without a scheme clients go to port 80.
pub(super) fn reaches_by_https(kubeconfig: &str) -> bool {
    values(kubeconfig, "server").all(|server| server.starts_with("https://"))
}

/// When the first of the tokens in `kubeconfig` expires; `None` if none does.
pub(super) fn expiry(kubeconfig: &str) -> Option<Time> {
    values(kubeconfig, "token").filter_map(|token| eks(token).or_else(|| jwt(token))).min()
}

/// The values of `name:` in YAML and of `"name":` in JSON.
fn values<'a>(kubeconfig: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    kubeconfig.match_indices(name).filter_map(|(at, word)| {
        let before = kubeconfig[..at].chars().next_back();
        let is_name = before.is_none_or(|before| before.is_whitespace() || "\"'{,".contains(before));
        let rest = kubeconfig[at + word.len()..].trim_start_matches(['"', '\'']).trim_start();
        let value = rest.strip_prefix(':')?.trim_start().trim_start_matches(['"', '\'']);
        let end = value.find(|next: char| next.is_whitespace() || "\"',}".contains(next)).unwrap_or(value.len());
        (is_name && end > 0).then(|| &value[..end])
    })
}

/// The end of a token of EKS: its signed URL says when it was signed.
fn eks(token: &str) -> Option<Time> {
    let url = decoded(token.strip_prefix(EKS)?)?;
    let (_, date) = url.split_once("X-Amz-Date=")?;
    let field =
        |from: usize, to: usize| date.get(from..to).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    // 20260101T103000Z
    let (year, month, day) = (field(0, 4)?, field(4, 6)?, field(6, 8)?);
    let (hour, minute, second) = (field(9, 11)?, field(11, 13)?, field(13, 15)?);
    let signed: Time = format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z").parse().ok()?;
    Some(signed.plus(EKS_LIFETIME))
}

/// The claim `exp` of a JSON web token.
fn jwt(token: &str) -> Option<Time> {
    let mut parts = token.split('.');
    let (Some(_), Some(claims), Some(_), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
        return None;
    };
    let claims: Value = serde_json::from_str(&decoded(claims)?).ok()?;
    claims["exp"].as_i64().map(Time::from_unix)
}

fn decoded(text: &str) -> Option<String> {
    String::from_utf8(URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn eks_token(date: &str) -> String {
        let url =
            format!("https://sts.eu-west-1.amazonaws.com/?Action=GetCallerIdentity&X-Amz-Date={date}&X-Amz-Expires=60");
        format!("{EKS}{}", URL_SAFE_NO_PAD.encode(url))
    }

    fn web_token(claims: &str) -> String {
        format!("{}.{}.c2ln", URL_SAFE_NO_PAD.encode(r#"{"alg":"RS256"}"#), URL_SAFE_NO_PAD.encode(claims))
    }

    #[test]
    fn a_server_is_a_url_with_https() {
        for server in
            ["server: https://a.invalid", "\"server\":\"https://a.invalid:6443\"", "kind: Config", "a-server: b"]
        {
            assert!(reaches_by_https(&format!("- cluster:\n    {server}\n  name: a\n")), "{server}");
        }
        for server in
            ["server: 34.1.2.3", "server: http://a.invalid", "\"server\": \"a.invalid:443\"", "server: 'ftp://a'"]
        {
            assert!(!reaches_by_https(&format!("- cluster:\n    {server}\n  name: a\n")), "{server}");
        }
    }

    #[test]
    fn the_end_of_a_token_is_found_in_every_form_of_kubeconfig() {
        let (eks, web) = (eks_token("20260101T103000Z"), web_token(r#"{"exp":1767264300}"#));
        let end: Time = "2026-01-01T10:45:00Z".parse().unwrap();
        for kubeconfig in [
            format!("users:\n- name: a\n  user:\n    token: {eks}\n"),
            format!("users:\n- name: a\n  user:\n    token: \"{eks}\""),
            format!("users:\n- name: token\n  user: {{'token': '{eks}'}}\n"),
            format!("{{\"users\":[{{\"user\":{{\"token\":\"{eks}\"}}}}]}}"),
            format!("    token: {web}\n"),
            format!("a token: {}\n token: {eks}\n", web_token(r#"{"exp":1999999999}"#)),
        ] {
            assert_eq!(expiry(&kubeconfig), Some(end), "{kubeconfig}");
        }
    }

    #[test]
    fn what_has_no_end_expires_never() {
        for kubeconfig in [
            String::new(),
            "users:\n- user:\n    exec:\n      command: aws\n      args: [eks, get-token]\n".to_owned(),
            "    token: opaque\n    tokenFile: /a.b.c\n".to_owned(),
            format!("    token: {EKS}%%%\n"),
            format!("    token: {}\n", eks_token("today")),
            format!("    token: {}\n", eks_token("20261301T103000Z")),
            format!("    token: {}\n", web_token(r#"{"sub":"a"}"#)),
            "    token:\n".to_owned(),
            "token".to_owned(),
            "    refresh-token: a.b.c\n".to_owned(),
            "é token: é\n".to_owned(),
        ] {
            assert_eq!(expiry(&kubeconfig), None, "{kubeconfig}");
        }
    }
}
