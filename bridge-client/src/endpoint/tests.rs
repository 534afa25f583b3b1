use bridge_protocol::connection_file::{HostFile, SCHEMA};
use connection_file::Published;
use tempfile::TempDir;

use super::*;

/// A user's machine: an environment and a private directory in which daemons publish themselves.
/// The "daemons" are this very process, which is alive.
struct Machine {
    directory: TempDir,
    variables: Vec<(&'static str, String)>,
    published: Vec<Published>,
}

impl Machine {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_str().unwrap().to_owned();
        Self { directory, variables: vec![("XDG_RUNTIME_DIR", path)], published: Vec::new() }
    }

    fn with(mut self, name: &'static str, value: &str) -> Self {
        self.variables.push((name, value.to_owned()));
        self
    }

    fn with_run(self, address: &str, session: &str) -> Self {
        self.with("RUN_BRIDGE_ADDR", address)
            .with("RUN_BRIDGE_TOKEN", &"e".repeat(64))
            .with("RUN_BRIDGE_SESSION", session)
    }

    fn with_daemon(mut self, session: &str, unix: Option<&str>) -> Self {
        let (pid, session) = (std::process::id(), session.parse::<SessionId>().unwrap());
        let process_start = process_identity::ProcessId::of(pid).unwrap().start_time;
        let client = ConnectionFile {
            schema: SCHEMA,
            session: session.clone(),
            pid,
            process_start,
            version: "0.1.0".into(),
            addr: "ws://127.0.0.1:4711/".into(),
            unix: unix.map(str::to_owned),
            token: Secret::new("c".repeat(64)),
            directory: format!("/home/ada/{session}"),
            program: Some("python3".into()),
            wants_editor: false,
            started_at: 1_000,
        };
        let host_token = Secret::new("d".repeat(64));
        let host = HostFile { schema: SCHEMA, session, pid, process_start, host_token };
        let place = Directory::at(self.directory.path().join("run-bridge"));
        self.published.push(place.publish(&client, &host).unwrap());
        self
    }

    fn get(&self) -> impl Fn(&str) -> Option<String> {
        |name| self.variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.clone())
    }

    fn find(&self, session: Option<&str>) -> Result<Endpoint, Error> {
        Endpoint::find(session.map(|text| text.parse().unwrap()).as_ref(), self.get())
    }
}

#[test]
fn the_environment_of_a_run_comes_first() {
    let machine =
        Machine::new().with_daemon("other", None).with_run("ws://127.0.0.1:5000/", "mine");
    let found = machine.find(None).unwrap();
    assert_eq!(found.address.to_string(), "ws://127.0.0.1:5000/");
    assert_eq!((found.session.as_str(), found.token.expose()), ("mine", &*"e".repeat(64)));
}

#[test]
fn a_session_that_was_chosen_beats_the_environment() {
    let machine =
        Machine::new().with_daemon("other", None).with_run("ws://127.0.0.1:5000/", "mine");
    assert_eq!(machine.find(Some("mine")).unwrap().token.expose(), "e".repeat(64));
    assert_eq!(machine.find(Some("other")).unwrap().token.expose(), "c".repeat(64));
    let missing = machine.find(Some("missing")).unwrap_err();
    assert!(matches!(&missing, Error::UnknownSession(session) if session.as_str() == "missing"));
    let broken = Machine::new().with_daemon("other", None).with_run("nonsense", "mine");
    assert!(broken.find(Some("other")).is_ok());
    assert!(matches!(broken.find(None), Err(Error::BadSetting { .. })));
}

#[test]
fn one_daemon_needs_no_choice_and_its_unix_socket_is_preferred() {
    let found = Machine::new().with_daemon("one", None).find(None).unwrap();
    assert_eq!(found.address.to_string(), "ws://127.0.0.1:4711/");
    let found = Machine::new().with_daemon("one", Some("/run/one.sock")).find(None).unwrap();
    assert_eq!(found.address, Address::Unix("/run/one.sock".into()));
}

#[test]
fn none_is_an_error_that_says_how_to_get_one() {
    let error = Machine::new().find(None).unwrap_err();
    assert!(matches!(error, Error::NoDaemon));
    assert!(error.to_string().contains("bridge-daemon run --"), "{error}");
}

#[test]
fn several_are_listed_and_a_session_alone_chooses() {
    let machine = Machine::new().with_daemon("one", None).with_daemon("two", None);
    let error = machine.find(None).unwrap_err().to_string();
    for part in ["2 bridge daemons", "--session ID", "RUN_BRIDGE_SESSION", "python3"] {
        assert!(error.contains(part), "{part} is not in: {error}");
    }
    for session in ["one", "two"] {
        assert!(error.contains(&format!("/home/ada/{session}")), "{error}");
    }
    assert!(!error.contains("cccc"), "the token shows: {error}");
    let machine = machine.with("RUN_BRIDGE_SESSION", "two");
    assert_eq!(machine.find(None).unwrap().session.as_str(), "two");
    assert_eq!(machine.find(Some("one")).unwrap().session.as_str(), "one");
}

#[test]
fn hosts_get_the_other_token() {
    let machine = Machine::new().with_daemon("one", None);
    let found = Endpoint::find_for_host(None, machine.get()).unwrap();
    assert_eq!(found.token.expose(), "d".repeat(64));
    let machine = Machine::new().with_run("ws://127.0.0.1:5000/", "gone");
    let error = Endpoint::find_for_host(None, machine.get()).unwrap_err();
    assert!(matches!(error, Error::NoHostToken(_)));
}

#[test]
fn addresses_are_of_this_machine() {
    for good in [
        "ws://127.0.0.1:1/",
        "ws://localhost:65535/",
        "ws://[::1]:80/",
        "unix:/run/user/1000/x.sock",
    ] {
        assert_eq!(good.parse::<Address>().unwrap().to_string(), good);
    }
    assert_eq!("ws://127.0.0.1:7".parse::<Address>().unwrap().to_string(), "ws://127.0.0.1:7/");
    for bad in [
        "",
        "ws://127.0.0.1/",
        "ws://127.0.0.1:0/",
        "ws://127.0.0.1:+7/",
        "ws://127.0.0.1:65536/",
        "ws://192.168.0.1:80/",
        "ws://127.0.0.1.example.org:80/",
        "ws://user@127.0.0.1:80/",
        "wss://127.0.0.1:80/",
        "http://127.0.0.1:80/",
        "unix:relative.sock",
        "127.0.0.1:80",
    ] {
        assert!(matches!(bad.parse::<Address>(), Err(Error::BadSetting { .. })), "{bad}");
    }
}

#[test]
fn settings_that_cannot_be_used_are_named_but_tokens_are_not_shown() {
    let session = Machine::new().with_run("ws://127.0.0.1:5000/", "a/b").find(None).unwrap_err();
    assert!(session.to_string().contains("\"a/b\""), "{session}");
    let machine = Machine::new()
        .with("RUN_BRIDGE_ADDR", "ws://127.0.0.1:5000/")
        .with("RUN_BRIDGE_TOKEN", "secret\r\nX-Evil: 1")
        .with("RUN_BRIDGE_SESSION", "s");
    let token = machine.find(None).unwrap_err().to_string();
    assert!(!token.contains("secret") && token.contains("token"), "{token}");
}

#[test]
fn ages_are_told_in_one_unit() {
    let age = |seconds| Age(Duration::from_secs(seconds)).to_string();
    assert_eq!([age(0), age(119), age(120)], ["0 s", "119 s", "2 min"]);
    assert_eq!([age(7_199), age(7_200), age(172_800)], ["119 min", "2 h", "2 d"]);
}

#[test]
fn a_token_file_holds_a_token_and_perhaps_a_line_end() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("token");
    let token = "ab".repeat(32);
    std::fs::write(&file, format!("{token}\n")).unwrap();
    let address: Address = "unix:/run/x.sock".parse().unwrap();
    let endpoint = Endpoint::with_token_file(address.clone(), "s".parse().unwrap(), &file).unwrap();
    assert_eq!((endpoint.token.expose(), endpoint.address), (&*token, address));
    for bad in ["", "\n", "two words"] {
        std::fs::write(&file, bad).unwrap();
        assert!(matches!(read_token(&file), Err(Error::BadSetting { .. })), "{bad:?}");
    }
    let missing = read_token(&directory.path().join("none")).unwrap_err().to_string();
    assert!(missing.contains("name a file that can be read"), "{missing}");
}
