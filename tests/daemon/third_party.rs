use harness::{Daemon, Socket};
use jsonrpsee_core::client::ClientT;
use jsonrpsee_core::client::Error;
use jsonrpsee_core::params::ObjectParams;
use jsonrpsee_ws_client::{HeaderMap, HeaderValue, WsClient, WsClientBuilder};
use serde_json::{Value, json};

async fn connect(daemon: &Daemon, token: &str) -> WsClient {
    let mut headers = HeaderMap::new();
    let bearer = HeaderValue::from_str(&format!("Bearer {token}")).unwrap();
    headers.insert("authorization", bearer);
    let builder = WsClientBuilder::new().set_headers(headers);
    builder.build(format!("ws://127.0.0.1:{}/", daemon.port())).await.unwrap()
}

fn params(members: Value) -> ObjectParams {
    let mut params = ObjectParams::new();
    for (name, value) in members.as_object().unwrap() {
        params.insert(name, value).unwrap();
    }
    params
}

/// Answers requests with their own params, until the connection ends.
fn echo(mut host: Socket) {
    std::thread::spawn(move || {
        while let Some(text) = host.next_text() {
            let request: Value = serde_json::from_str(&text).unwrap();
            if !request["id"].is_null() {
                host.answer(&request, request["params"].clone());
            }
        }
    });
}

#[test]
fn a_client_that_we_have_not_written_calls_the_daemon_a_window_and_a_tool() {
    let daemon = Daemon::start();
    echo(daemon.host("window"));
    let mut window = Socket::connect(daemon.port(), daemon.text("hostToken"));
    let wanted = json!({"role": "host", "runtimeIds": ["box"], "tools": ["file/*"]});
    let made = window.call("bridge/createToken", wanted);
    let mut tools = Socket::connect(daemon.port(), made["token"].as_str().unwrap());
    tools.call("runtime/register", json!({"methods": ["file/read"], "workspaceFolders": ["/w"]}));
    echo(tools);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = connect(&daemon, daemon.text("token")).await;
        let pong: Value = client.request("bridge/ping", ObjectParams::new()).await.unwrap();
        assert_eq!(pong, json!({}));
        let chat: Value =
            client.request("vscode/chat", params(json!({"message": "hi"}))).await.unwrap();
        assert_eq!(chat, json!({"message": "hi"}));
        let read: Value =
            client.request("file/read", params(json!({"path": "/w/x"}))).await.unwrap();
        assert_eq!(read, json!({"path": "/w/x"}));
        let calls =
            (0..20).map(|n| client.request::<Value, _>("vscode/chat", params(json!({"n": n}))));
        let mut answers = Vec::new();
        for call in calls.collect::<Vec<_>>() {
            answers.push(call.await.unwrap()["n"].clone());
        }
        assert_eq!(answers, (0..20).collect::<Vec<_>>());
        let refused = client.request::<Value, _>("nobody/serves", ObjectParams::new()).await;
        let Err(Error::Call(error)) = refused else { panic!("{refused:?}") };
        assert_eq!(error.code(), -32601);
        assert!(error.data().unwrap().get().contains("MethodNotFound"), "{error:?}");
    });
}
