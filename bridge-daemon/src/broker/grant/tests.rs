use super::*;
use bridge_protocol::Right;

fn general() -> HostGrant {
    HostGrant::general(["sandbox".to_owned()], &["file", "action"])
}

fn made(ids: &[&str], tools: &[&str]) -> Result<HostGrant, WireError> {
    make(&general(), ids, tools)
}

fn make(grant: &HostGrant, ids: &[&str], tools: &[&str]) -> Result<HostGrant, WireError> {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    grant.narrowed(owned(ids), owned(tools))
}

fn code(outcome: Result<HostGrant, WireError>) -> Option<ErrorKind> {
    outcome.err().and_then(|error| ErrorKind::from_code(error.code()))
}

#[test]
fn the_general_grant_leaves_out_what_belongs_to_others() {
    let grant = general();
    assert!(grant.allows_id("window") && !grant.allows_id("sandbox"));
    for tool in ["vscode/chat", "shell/run", "dapEvent", "my/own", "files/read"] {
        assert!(grant.allows_tool(tool), "{tool}");
    }
    for tool in ["file/read", "action/execute"] {
        assert!(!grant.allows_tool(tool), "{tool}");
    }
    assert!(grant.may_end_daemon() && !grant.returns() && grant.check_edge().is_err());
}

#[test]
fn a_child_has_its_id_and_its_tools_and_no_more() {
    let sandbox = HostGrant::child("sandbox", &["file"], false);
    assert!(sandbox.allows_id("sandbox") && !sandbox.allows_id("other"));
    assert!(sandbox.allows_tool("file/read") && !sandbox.allows_tool("vscode/chat"));
    assert!(sandbox.returns() && sandbox.check_edge().is_err() && !sandbox.may_end_daemon());
    assert_eq!(sandbox.only_id(), Some("sandbox"));
    assert!(HostGrant::child("edge", &["action"], true).check_edge().is_ok());
    let own = HostGrant::own("terminal", &["vscode"]);
    assert!(!own.returns() && !own.may_end_daemon() && own.check_edge().is_err());
}

#[test]
fn the_general_token_can_make_one_for_tools_that_it_may_not_serve_itself() {
    let grant = made(&["box"], &["file/*", "shell/run"]).unwrap();
    assert!(grant.allows_tool("file/read") && grant.allows_tool("shell/run"));
    assert!(!grant.allows_tool("shell/input") && !grant.allows_tool("vscode/chat"));
    assert!(grant.allows_id("box") && !grant.allows_id("sandbox"));
    assert!(!grant.may_end_daemon() && grant.check_edge().is_err() && !grant.returns());
    assert_eq!(code(made(&["sandbox"], &["file/*"])), Some(ErrorKind::Forbidden));
}

#[test]
fn a_made_token_can_be_narrowed_and_never_widened() {
    let parent = made(&["a", "b"], &["file/*", "shell/run"]).unwrap();
    let narrower = make(&parent, &["b"], &["file/read", "shell/run"]).unwrap();
    assert!(narrower.allows_tool("file/read") && !narrower.allows_tool("file/write"));
    assert!(make(&parent, &["a"], &["file/*"]).is_ok());
    for (ids, tools) in [
        (&["c"][..], &["file/*"][..]),
        (&["a"], &["shell/*"]),
        (&["a"], &["shell/input"]),
        (&["a"], &["vscode/chat"]),
    ] {
        assert_eq!(
            code(make(&parent, ids, tools)),
            Some(ErrorKind::Forbidden),
            "{ids:?} {tools:?}"
        );
    }
    assert_eq!(code(make(&narrower, &["b"], &["file/*"])), Some(ErrorKind::Forbidden));
    let open = HostGrant { standing: Standing::Single, ..general() };
    assert_eq!(code(make(&open, &["a"], &["file/*"])), Some(ErrorKind::Forbidden));
    assert!(make(&open, &["a"], &["shell/*"]).is_ok());
}

#[test]
fn the_ids_and_tools_of_a_new_token_are_checked() {
    let many: Vec<_> = (0..=ENTRIES).map(|n| format!("x{n}")).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    for (ids, tools) in [
        (&[][..], &["file/*"][..]),
        (&["a"], &[]),
        (&["a b"], &["file/*"]),
        (&many, &["file/*"]),
        (&["a"], &many),
        (&["a"], &["*"]),
        (&["a"], &["/*"]),
        (&["a"], &["bridge/*"]),
        (&["a"], &["runtime/list"]),
        (&["a"], &["$/progress"]),
        (&["a"], &["a/b/*"]),
        (&["a"], &["fi*/read"]),
        (&["a"], &[""]),
    ] {
        assert_eq!(code(made(ids, tools)), Some(ErrorKind::InvalidParams), "{ids:?} {tools:?}");
    }
}

#[test]
fn a_client_gives_no_more_than_it_has() {
    let rights = |text: &str| text.parse::<Rights>().unwrap();
    let own = Grant::Client(rights("read,chat"));
    let wanted = |rights| CreateTokenParams::Client { rights };
    assert_eq!(own.narrowed(wanted(rights("chat"))), Ok(Grant::Client(rights("chat"))));
    assert_eq!(own.narrowed(wanted(Rights::NONE)), Ok(Grant::Client(Rights::NONE)));
    let error = own.narrowed(wanted(rights("chat,run"))).unwrap_err();
    assert_eq!(error.code(), ErrorKind::Forbidden.code());
    assert!(error.data().unwrap().get().contains(r#""needs":["run"]"#), "{error:?}");
    assert!(own.may_talk() && !Grant::Client(rights("read")).may_talk());
}

#[test]
fn each_role_makes_tokens_of_its_own_kind() {
    let host = CreateTokenParams::Host { runtime_ids: vec!["a".into()], tools: vec!["x/y".into()] };
    let client = CreateTokenParams::Client { rights: Rights::of(&[Right::Chat]) };
    let general = Grant::Host(Arc::new(general()));
    let wrong = [Grant::Client(Rights::ALL).narrowed(host.clone()), general.narrowed(client)];
    for refused in wrong {
        assert_eq!(refused.unwrap_err().code(), ErrorKind::WrongRole.code());
    }
    assert_eq!(general.narrowed(host).unwrap().role(), Role::Host);
    assert!(general.may_talk(), "it may serve events");
    assert!(!Grant::Host(Arc::new(HostGrant::child("a", &["file"], false))).may_talk());
}
