//! Tests of commands and cells under a policy.

use std::fs;

use sandbox_isolation::{self as isolation, Level, Unavailable};
use sandbox_test_support::kernel_python;
use serde_json::json;

use crate::server::{Options, Server, content, exit_code};

#[test]
fn the_required_policy_applies_to_commands_and_cells() {
    match isolation::require(Level::Landlock) {
        Ok(_) => {}
        Err(isolation::Error::Unavailable { reason: Unavailable::NotInKernel, .. }) => {
            return eprintln!("skipped: this Linux has no Landlock");
        }
        Err(error) => panic!("{error}"),
    }
    let [temporary, outside] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let jupyter = ["--plugins", "jupyter", "--kernel-python", kernel_python()];
    let walls = ["--require", "landlock", "--limit-file-size", "1"];
    let server = Server::start_with(&Options {
        arguments: [walls, jupyter].concat().into_iter().map(str::to_owned).collect(),
        variables: vec![("TMPDIR", temporary.path().to_str().unwrap().to_owned())],
        ..Options::default()
    });
    let target = outside.path().join("new");
    assert_eq!(exit_code(&server.run("echo x > inside && rm $(mktemp)")), 0);
    assert_ne!(exit_code(&server.run(&format!("echo x > {}", target.display()))), 0);
    let code = format!("open('by-cell', 'w')\nopen('{}', 'w')", target.display());
    let cell = server.action("run_ipython", json!({ "code": code }));
    assert!(content(&cell).contains("PermissionError"), "{cell}");
    assert!(fs::exists(server.path("by-cell")).unwrap());
    let written = server.action("write", json!({"path": target, "content": "x"}));
    assert_eq!(written["extras"]["error_id"], "outside_workspace", "{written}");
    assert!(!target.exists());
    assert_eq!(exit_code(&server.run("head -c 2M /dev/zero > big")), 128 + 25);
}
