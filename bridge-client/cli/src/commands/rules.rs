//! The rules of a scripted host: which rule applies to a request, and how it is answered. No I/O.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bridge_protocol::methods::RegisterParams;
use bridge_protocol::{Method, WireError};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// Matches any method.
const ANY: &str = "*";

/// The content of a rules file.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rules {
    #[serde(default)]
    runtime_id: Option<String>,
    #[serde(default)]
    title: String,
    #[serde(default)]
    workspace_folders: Vec<String>,
    #[serde(default)]
    focused: bool,
    #[serde(default)]
    edge: bool,
    /// Methods to register in addition to those that the rules name.
    #[serde(default)]
    methods: Vec<String>,
    rules: Vec<Rule>,
}

/// What to do with a request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rule {
    method: String,
    #[serde(default)]
    when: BTreeMap<String, Box<RawValue>>,
    #[serde(default)]
    pub progress: Vec<Box<RawValue>>,
    #[serde(default)]
    pub fifo: Option<PathBuf>,
    #[serde(default)]
    pub delay_ms: u64,
    #[serde(default, deserialize_with = "present")]
    result: Option<Box<RawValue>>,
    #[serde(default)]
    error: Option<RuleError>,
    #[serde(default)]
    silent: bool,
    #[serde(default)]
    exit: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleError {
    code: i32,
    message: String,
    #[serde(default)]
    data: Option<Box<RawValue>>,
}

/// How a rule ends.
#[derive(Debug)]
pub enum End {
    Answer(Result<Box<RawValue>, WireError>),
    Silence,
    Exit,
}

impl Rules {
    /// Parses a rules file. The error is a sentence for its author.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut rules: Self = serde_json::from_str(text).map_err(|error| {
            format!("it is no rules file ({error}): see `bridge-client host --help`")
        })?;
        for (n, rule) in rules.rules.iter_mut().enumerate() {
            let ends = [rule.result.is_some(), rule.error.is_some(), rule.silent, rule.exit];
            if ends.into_iter().filter(|given| *given).count() != 1 {
                let n = n + 1;
                return Err(format!("rule {n} must have one of result, error, silent and exit"));
            }
            rule.method = canonical(&rule.method);
        }
        Ok(rules)
    }

    /// The parameters of `runtime/register`.
    pub fn registration(&self) -> RegisterParams {
        let named = self.rules.iter().map(|rule| &rule.method).filter(|method| *method != ANY);
        let mut methods: Vec<String> =
            named.cloned().chain(self.methods.iter().map(|method| canonical(method))).collect();
        if self.rules.iter().any(|rule| rule.method == ANY) {
            methods.extend(Method::ALL.map(|method| method.name().to_owned()));
        }
        methods.sort();
        methods.dedup();
        RegisterParams {
            runtime_id: self.runtime_id.clone(),
            title: self.title.clone(),
            workspace_folders: self.workspace_folders.clone(),
            methods,
            focused: self.focused,
            edge: self.edge,
        }
    }

    /// The first rule that applies.
    pub fn find(&self, method: &str, params: &Params<'_>) -> Option<&Rule> {
        self.rules.iter().find(|rule| {
            let mut wanted = rule.when.iter();
            [ANY, method].contains(&&*rule.method)
                && wanted.all(|(name, value)| params.0.get(name).is_some_and(|p| same(p, value)))
        })
    }
}

impl Rule {
    /// How the request ends, after progress, FIFO and delay.
    pub fn end(&self, params: &Params<'_>) -> End {
        match (&self.result, &self.error) {
            (Some(result), _) => End::Answer(Ok(params.fill(result))),
            (None, Some(error)) => {
                let RuleError { code, message, data } = error;
                End::Answer(Err(WireError::owned(*code, message, data.as_deref())))
            }
            (None, None) if self.silent => End::Silence,
            (None, None) => End::Exit,
        }
    }
}

/// The members of a request's params, as raw text.
#[derive(Debug, Default)]
pub struct Params<'p>(BTreeMap<String, &'p RawValue>);

impl<'p> Params<'p> {
    /// Reads the members. Arrays and absent params have none.
    pub fn new(params: Option<&'p RawValue>) -> Self {
        Self(params.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default())
    }

    /// Replaces each `${name}` in the strings of a value by that member. In JSON, `$` occurs only in strings, so the raw
    /// text can be searched, and everything else stays unchanged. A name that is not a member also stays.
    pub fn fill(&self, value: &RawValue) -> Box<RawValue> {
        let mut filled = String::new();
        let mut rest = value.get();
        while let Some((before, after)) = rest.split_once("${") {
            filled.push_str(before);
            let member = after.split_once('}').and_then(|(name, after)| {
                self.0.get(name).map(|member| (within_string(member), after))
            });
            match member {
                Some((text, after)) => {
                    filled.push_str(&text);
                    rest = after;
                }
                None => {
                    filled.push_str("${");
                    rest = after;
                }
            }
        }
        filled.push_str(rest);
        RawValue::from_string(filled).expect("text within strings was replaced by such text")
    }
}

/// A value as part of a string: text without quotes, anything else as JSON.
fn within_string(value: &RawValue) -> String {
    let quoted = match value.get() {
        text if text.starts_with('"') => text.to_owned(),
        json => serde_json::to_string(json).expect("a string always prints"),
    };
    quoted[1..quoted.len() - 1].to_owned()
}

/// Whether two values are equal, as raw text or after parsing: strings may be spelt with different escapes.
fn same(one: &RawValue, other: &RawValue) -> bool {
    let value = |raw: &RawValue| serde_json::from_str::<Value>(raw.get()).ok();
    one.get() == other.get() || value(one).is_some_and(|one| Some(one) == value(other))
}

fn canonical(name: &str) -> String {
    Method::from_name(name).map_or_else(|| name.to_owned(), |method| method.name().to_owned())
}

/// Reads a member that is present as `Some`, even if it is null. `Option` alone would take null for absent.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn rules(rules: &str) -> Rules {
        Rules::parse(&format!(r#"{{"rules": {rules}}}"#)).unwrap()
    }

    /// The answer of the first rule that applies, as text.
    fn answer(rules: &Rules, method: &str, params: &str) -> Option<String> {
        let params = raw(params);
        let params = Params::new(Some(&params));
        match rules.find(method, &params)?.end(&params) {
            End::Answer(Ok(result)) => Some(result.get().to_owned()),
            End::Answer(Err(error)) => Some(format!("{} {}", error.code(), error.message())),
            other => Some(format!("{other:?}")),
        }
    }

    #[test]
    fn the_first_rule_that_fits_wins() {
        let rules = rules(
            r#"[{"method": "chat", "when": {"message": "2+2?", "n": 1}, "result": "first"},
                {"method": "vscode/chat", "when": {"message": "2+2?"}, "result": "second"},
                {"method": "vscode/executeCommand", "error": {"code": -32054, "message": "no"}},
                {"method": "my/own", "exit": true},
                {"method": "*", "silent": true}]"#,
        );
        let check = |method, params, expected: &str| {
            assert_eq!(answer(&rules, method, params).as_deref(), Some(expected), "{params}");
        };
        check("vscode/chat", r#"{"message": "2+2?", "n": 1, "more": 0}"#, "\"first\"");
        check("vscode/chat", r#"{"message": "\u0032+2?"}"#, "\"second\"");
        check("vscode/chat", r#"{"message": "2+2?", "n": 2}"#, "\"second\"");
        check("vscode/chat", r#"{"message": "3"}"#, "Silence");
        check("vscode/chat", "[]", "Silence");
        check("vscode/executeCommand", "{}", "-32054 no");
        check("my/own", "{}", "Exit");
    }

    #[test]
    fn without_a_fitting_rule_there_is_none() {
        let rules = rules(r#"[{"method": "vscode/chat", "result": 1}]"#);
        assert!(rules.find("my/own", &Params::default()).is_none());
    }

    #[test]
    fn members_are_put_into_strings_and_the_rest_stays_as_written() {
        let rules = rules(
            r#"[{"method": "m", "result": { "a": "You said: ${message}!", "n": 1e400,
                "b": "${n} ${list} ${gone} $ ${", "c": "${message}${message}" }}]"#,
        );
        let params = r#"{"message": "say \"hi\"\n", "n": 1.0, "list": ["x"]}"#;
        let expected = r#"{ "a": "You said: say \"hi\"\n!", "n": 1e400,
                "b": "1.0 [\"x\"] ${gone} $ ${", "c": "say \"hi\"\nsay \"hi\"\n" }"#;
        assert_eq!(answer(&rules, "m", params).as_deref(), Some(expected));
    }

    #[test]
    fn a_null_result_is_a_result() {
        let rules = rules(r#"[{"method": "m", "result": null}]"#);
        assert_eq!(answer(&rules, "m", "{}").as_deref(), Some("null"));
    }

    #[test]
    fn the_registration_names_every_method_once() {
        let text = r#"{"runtimeId": "r", "title": "t", "methods": ["dapEvent", "my/own"],
            "rules": [{"method": "my/own", "result": 1}, {"method": "chat", "result": 1}]}"#;
        let registration = Rules::parse(text).unwrap().registration();
        assert_eq!(registration.runtime_id.as_deref(), Some("r"));
        assert_eq!(registration.methods, ["dapEvent", "my/own", "vscode/chat"]);
        let any = rules(r#"[{"method": "*", "silent": true}]"#).registration();
        assert_eq!(any.methods.len(), 4);
    }

    #[test]
    fn mistakes_in_the_file_are_named() {
        let error = |text: &str| Rules::parse(text).unwrap_err();
        assert!(error("[]").contains("no rules file"));
        assert!(error(r#"{"rules": [{"method": "m", "reslut": 1}]}"#).contains("reslut"));
        let both = r#"{"rules": [{"method": "m", "result": 1}, {"method": "m", "result": 1, "silent": true}]}"#;
        assert!(error(both).contains("rule 2"));
        assert!(error(r#"{"rules": [{"method": "m"}]}"#).contains("rule 1"));
    }
}
