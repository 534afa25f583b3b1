use bridge_protocol::methods::*;
use bridge_protocol::{Dialect, ErrorKind, Message, Method, Outcome};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn golden(name: &str) -> Vec<Value> {
    let path = format!("{}/wire/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn requests_mean_what_they_should() {
    for case in golden("requests.json") {
        let text = case["text"].as_str().unwrap();
        let Ok(Message::Request(request)) = Message::parse(text) else { panic!("{case}") };
        let dialect = match request.dialect {
            Dialect::JsonRpc => "jsonRpc",
            Dialect::Bridge => "bridge",
        };
        let method = match Method::from_name(&request.method) {
            Some(method) => method.name().to_owned(),
            None => request.method.clone().into_owned(),
        };
        let params: Value =
            request.params.map_or(Value::Null, |raw| serde_json::from_str(raw.get()).unwrap());
        assert_eq!(
            json!([dialect, request.id.raw(), method, params]),
            json!([case["dialect"], case["id"], case["method"], case["params"]]),
            "{}",
            case["name"]
        );
    }
}

#[test]
fn answers_mean_what_they_should() {
    for case in golden("answers.json") {
        match Message::parse(case["text"].as_str().unwrap()).unwrap() {
            Message::Response(response) => {
                assert_eq!(json!(response.id), case["id"], "{case}");
                match response.outcome {
                    Outcome::Success(result) => assert_eq!(
                        serde_json::from_str::<Value>(result.get()).unwrap(),
                        case["result"]
                    ),
                    Outcome::Failure(error) => {
                        let error: Value = serde_json::from_str(error.get()).unwrap();
                        assert_eq!(
                            json!([error["code"], error["data"]["kind"]]),
                            json!([case["error"]["code"], case["error"]["kind"]])
                        );
                    }
                    Outcome::Malformed => panic!("{case}"),
                }
            }
            Message::Notification(note) => {
                let progress: ProgressParams<'_> =
                    serde_json::from_str(note.params.unwrap().get()).unwrap();
                assert_eq!(
                    serde_json::from_str::<Value>(progress.value.get()).unwrap(),
                    case["progress"]
                );
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_table_of_errors_is_the_same_everywhere() {
    let table: Vec<_> = ErrorKind::ALL
        .iter()
        .map(
            |kind| json!({"code": kind.code(), "kind": kind.name(), "retryable": kind.retryable()}),
        )
        .collect();
    assert_eq!(golden("errors.json"), table);
}

#[test]
fn parameters_and_results_survive_the_types() {
    let mut check = Check(golden("methods.json"));
    visit(&mut check);
    assert!(check.0.is_empty(), "no method of the catalogue is named so: {:?}", check.0);
}

/// The examples that have not been checked yet. Checking a method removes its examples.
struct Check(Vec<Value>);

impl MethodVisitor for Check {
    fn method<M: MethodType>(&mut self) {
        let examples = self.0.extract_if(.., |case| case["method"] == M::NAME);
        let examples: Vec<_> = examples.collect();
        assert!(
            !examples.is_empty(),
            "tests/wire/methods.json has no example of {}: add one",
            M::NAME
        );
        for case in examples {
            let mut params = round_trip::<M::Params>(&case["params"]);
            // The example spells out defaults.
            if case["params"]["level"].is_null()
                && let Some(params) = params.as_object_mut()
            {
                params.remove("level");
            }
            assert_eq!(params, case["params"], "{}", M::NAME);
            assert_eq!(round_trip::<M::Result>(&case["result"]), case["result"], "{}", M::NAME);
            for value in case["progress"].as_array().into_iter().flatten() {
                assert_eq!(progress(M::NAME, value), *value, "{}", M::NAME);
            }
        }
    }
}

/// A value of `$/progress`, parsed and printed again by its type.
fn progress(method: &str, value: &Value) -> Value {
    match method {
        "vscode/chat" => round_trip::<TextProgress>(value),
        "shell/run" | "shell/wait" => round_trip::<shell::OutputProgress>(value),
        "cell/run" => round_trip::<cell::CellProgress>(value),
        "action/execute" => round_trip::<action::OutputPiece>(value),
        other => panic!("{other} does not stream"),
    }
}

#[test]
fn methods_that_stream_have_examples_of_progress() {
    let examples = golden("methods.json");
    for method in ["vscode/chat", "shell/run", "shell/wait", "cell/run", "action/execute"] {
        let streams = |case: &Value| case["method"] == method && case["progress"].is_array();
        assert!(examples.iter().any(streams), "{method}");
    }
}

#[test]
fn notifications_survive_the_types() {
    for case in golden("notifications.json") {
        let text = case["params"].to_string();
        let printed = match case["method"].as_str().unwrap() {
            "$/cancelRequest" => {
                serde_json::to_value(serde_json::from_str::<CancelParams<'_>>(&text).unwrap())
            }
            "$/progress" => {
                serde_json::to_value(serde_json::from_str::<ProgressParams<'_>>(&text).unwrap())
            }
            "bridge/request" => Ok(round_trip::<RequestRecord>(&case["params"])),
            other => panic!("{other} is no notification of the wire"),
        };
        assert_eq!(printed.unwrap(), case["params"], "{case}");
    }
}

fn round_trip<T: Serialize + DeserializeOwned>(value: &Value) -> Value {
    let typed: T =
        serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{value}: {error}"));
    serde_json::to_value(typed).unwrap()
}
