//! Builds the parameters of `call` and `execute-command` from the arguments.

use std::collections::HashSet;
use std::io::Read;

use bridge_protocol::limits::MESSAGE_BYTES;
use serde_json::value::RawValue;

use crate::failure::Failure;

/// Builds parameters from one JSON object or array, from any number of `key=value`, or, for `-`, from JSON on stdin. JSON
/// is sent unchanged.
pub fn from_arguments(
    arguments: &[String],
    stdin: impl FnOnce() -> Result<String, Failure>,
) -> Result<Option<Box<RawValue>>, Failure> {
    match arguments {
        [] => Ok(None),
        [dash] if dash == "-" => {
            let text = stdin()?;
            if text.trim().is_empty() { Ok(None) } else { whole(&text).map(Some) }
        }
        [json] if json.trim_start().starts_with(['{', '[']) => whole(json).map(Some),
        pairs => members(pairs).map(Some),
    }
}

/// The text as a value: JSON stays JSON, anything else becomes a string.
pub fn value(text: &str) -> Box<RawValue> {
    let json = serde_json::from_str::<Box<RawValue>>(text);
    json.or_else(|_| serde_json::value::to_raw_value(text)).expect("a string always prints")
}

/// Reads all of stdin as text. Fails if it is too large to be sent.
pub fn read_stdin() -> Result<String, Failure> {
    String::from_utf8(read_stdin_bytes()?).map_err(|error| {
        Failure::Input(std::io::Error::new(std::io::ErrorKind::InvalidData, error))
    })
}

/// Reads all of stdin as bytes. Fails if it is too large to be sent.
pub fn read_stdin_bytes() -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let limit = MESSAGE_BYTES as u64 + 1;
    std::io::stdin().lock().take(limit).read_to_end(&mut bytes).map_err(Failure::Input)?;
    if bytes.len() > MESSAGE_BYTES {
        return Err(bridge_client::Error::TooBig { bytes: bytes.len() }.into());
    }
    Ok(bytes)
}

fn whole(text: &str) -> Result<Box<RawValue>, Failure> {
    let raw: Box<RawValue> = serde_json::from_str(text).map_err(|error| {
        Failure::Usage(format!("the parameters are not JSON ({error}): check quotes and brackets"))
    })?;
    if !raw.get().starts_with(['{', '[']) {
        let reason =
            "parameters must be an object or an array: write {\"key\": value} or key=value";
        return Err(Failure::Usage(reason.to_owned()));
    }
    Ok(raw)
}

fn members(pairs: &[String]) -> Result<Box<RawValue>, Failure> {
    let mut names = HashSet::new();
    let mut members = Vec::with_capacity(pairs.len());
    for pair in pairs {
        let Some((name, text)) = pair.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            let reason = format!("{pair:?} is neither JSON nor key=value: quote it for the shell");
            return Err(Failure::Usage(reason));
        };
        if !names.insert(name) {
            return Err(Failure::Usage(format!("{name:?} is given twice: remove one of them")));
        }
        let quoted = serde_json::to_string(name).expect("a string always prints");
        members.push(format!("{quoted}:{}", value(text).get()));
    }
    let text = format!("{{{}}}", members.join(","));
    Ok(RawValue::from_string(text).expect("made of names and values that are JSON"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(arguments: &[&str], stdin: &str) -> Result<Option<String>, Failure> {
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let built = from_arguments(&arguments, || Ok(stdin.to_owned()))?;
        Ok(built.map(|raw| raw.get().to_owned()))
    }

    #[test]
    fn json_is_sent_as_typed() {
        let check = |arguments: &[&str], stdin, expected: Option<&str>| {
            assert_eq!(build(arguments, stdin).unwrap().as_deref(), expected, "{arguments:?}");
        };
        check(&[], "", None);
        check(&[r#"{ "n": 1e400 }"#], "", Some(r#"{ "n": 1e400 }"#));
        check(&["[1, 2]"], "", Some("[1, 2]"));
        check(&["-"], "{\"a\": 1.0}\n", Some("{\"a\": 1.0}"));
        check(&["-"], " \n", None);
    }

    #[test]
    fn pairs_become_an_object_in_their_order() {
        let check = |arguments: &[&str], expected: &str| {
            assert_eq!(build(arguments, "").unwrap().as_deref(), Some(expected), "{arguments:?}");
        };
        check(&["message=hi there", "n=1"], r#"{"message":"hi there","n":1}"#);
        check(&["b=true", "a=null", "c=[1,2]"], r#"{"b":true,"a":null,"c":[1,2]}"#);
        check(&["big=1e400", r#"s="1""#], r#"{"big":1e400,"s":"1"}"#);
        check(&["empty=", "eq=a=b"], r#"{"empty":"","eq":"a=b"}"#);
        check(&["quote=\"", "ke\"y={oops"], r#"{"quote":"\"","ke\"y":"{oops"}"#);
    }

    #[test]
    fn nonsense_is_bad_usage() {
        for arguments in
            [&["hello"][..], &["{oops"], &["a=1", "a=2"], &["=1"], &["a=1", "-"], &["{}", "{}"]]
        {
            assert!(matches!(build(arguments, ""), Err(Failure::Usage(_))), "{arguments:?}");
        }
        for stdin in ["42", "nope", "{} {}"] {
            assert!(matches!(build(&["-"], stdin), Err(Failure::Usage(_))), "{stdin}");
        }
    }
}
