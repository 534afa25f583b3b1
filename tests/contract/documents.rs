use std::path::{Path, PathBuf};

use bridge_protocol::ErrorKind;
use bridge_protocol::methods;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn read(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The texts between backticks, and the targets of links, that look like paths of this repository.
fn paths(text: &str) -> Vec<String> {
    let quoted = text.split('`').skip(1).step_by(2);
    let linked = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let ours = |path: &&str| {
        let tops = [
            "bridge-",
            "connection-file/",
            "listener/",
            "private-files/",
            "process-identity/",
            "tests/",
            "scripts/",
            "examples/",
            "vscode-ext/",
            "edges/",
            "sandbox/",
            "bench/",
            "fuzz/",
            ".ci/",
        ];
        tops.iter().any(|top| path.starts_with(top))
            && path.contains('/')
            && !path.contains([' ', '*', '{', '$', '|', '…'])
    };
    quoted
        .chain(linked)
        .filter(ours)
        .map(|path| path.split('#').next().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn every_path_that_a_document_names_exists() {
    let mut missing = Vec::new();
    for document in [
        "README.md",
        "ARCHITECTURE.md",
        "PROTOCOL.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "GLOSSARY.md",
        "OPENHANDS.md",
        "SECURITY.md",
        "bench/NOTES.md",
        "tests/README.md",
        "tests/mutants.md",
        "tests/sandbox.md",
    ] {
        let named = paths(&read(document)).into_iter().filter(|path| !root().join(path).exists());
        missing.extend(named.map(|path| format!("{document}: {path}")));
    }
    assert!(
        missing.is_empty(),
        "documents name paths that do not exist: correct the documents\n{}",
        missing.join("\n")
    );
    assert!(paths(&read("ARCHITECTURE.md")).len() > 20, "the map of the code names its files");
}

#[test]
fn the_map_names_every_crate() {
    let workspace = read("Cargo.toml");
    let (_, members) = workspace.split_once("members = [").unwrap();
    let (members, _) = members.split_once(']').unwrap();
    let crates: Vec<_> = members.split('"').skip(1).step_by(2).collect();
    assert!(crates.len() > 10, "{crates:?}");
    let map = read("ARCHITECTURE.md");
    for folder in crates {
        assert!(
            map.contains(&format!("`{folder}")),
            "ARCHITECTURE.md lacks {folder}: add it to the map"
        );
    }
}

#[test]
fn the_protocol_lists_every_error() {
    let text = read("PROTOCOL.md");
    for kind in ErrorKind::ALL {
        let row = format!("| {} | {} |", kind.code(), kind.name());
        assert!(text.contains(&row), "PROTOCOL.md lacks the row {row}");
    }
}

#[test]
fn the_protocol_lists_every_method() {
    let text = read("PROTOCOL.md");
    for method in methods::all().map(|spec| spec.name) {
        assert!(
            text.contains(&format!("`{method}`")),
            "PROTOCOL.md lacks {method}: add it to the table of its family"
        );
    }
}

#[test]
fn the_protocol_says_which_rights_a_method_needs() {
    let text = read("PROTOCOL.md");
    for spec in methods::all() {
        let rights: Vec<_> = spec.needs.iter().map(|right| format!("`{}`", right.name())).collect();
        let row = match &rights[..] {
            // Methods of the daemon: the table says which role may call them.
            [] => format!("| `{}` | ", spec.name),
            rights => format!("| `{}` | {} |", spec.name, rights.join(", ")),
        };
        assert!(text.contains(&row), "PROTOCOL.md lacks the row {row}");
    }
}

#[test]
fn the_two_commands_of_the_readme_exist_and_ci_runs_the_second() {
    let readme = read("README.md");
    for script in ["./scripts/demo", "./scripts/test"] {
        assert!(readme.contains(script), "{script}");
        let mode = std::fs::metadata(root().join(script)).unwrap().permissions();
        assert_ne!(
            std::os::unix::fs::PermissionsExt::mode(&mode) & 0o111,
            0,
            "{script} is not executable"
        );
    }
    assert!(read(".ci/run").contains("scripts/test"));
}

#[test]
fn help_is_complete_and_the_same_as_written() {
    for (program, arguments, name) in [
        ("bridge-daemon", &["--help"][..], "bridge-daemon"),
        ("bridge-daemon", &["run", "--help"], "bridge-daemon-run"),
        ("bridge-daemon", &["serve", "--help"], "bridge-daemon-serve"),
        ("bridge-client", &["--help"], "bridge-client"),
        ("bridge-client", &["call", "--help"], "bridge-client-call"),
        ("bridge-client", &["host", "--help"], "bridge-client-host"),
        ("bridge-client", &["token", "--help"], "bridge-client-token"),
        ("bridge-client", &["act", "--help"], "bridge-client-act"),
        ("bridge-client", &["act", "run", "--help"], "bridge-client-act-run"),
        ("bridge-client", &["act", "edit", "--help"], "bridge-client-act-edit"),
        ("bridge-client", &["shell", "--help"], "bridge-client-shell"),
        ("bridge-client", &["shell", "run", "--help"], "bridge-client-shell-run"),
        ("bridge-client", &["file", "--help"], "bridge-client-file"),
        ("bridge-client", &["file", "edit", "--help"], "bridge-client-file-edit"),
        ("bridge-client", &["file", "grep", "--help"], "bridge-client-file-grep"),
        ("bridge-client", &["file", "hash", "--help"], "bridge-client-file-hash"),
        ("bridge-client", &["cell", "--help"], "bridge-client-cell"),
        ("bridge-client", &["cell", "run", "--help"], "bridge-client-cell-run"),
        ("bridge-client", &["page", "browse", "--help"], "bridge-client-page-browse"),
    ] {
        let output = std::process::Command::new(harness::binary(program))
            .args(arguments)
            .env("COLUMNS", "100")
            .output()
            .unwrap();
        let help = String::from_utf8(output.stdout).unwrap();
        let path = root().join(format!("tests/contract/help/{name}.txt"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &help).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(
            help, written,
            "{name}: build bridge-daemon and bridge-client, run with UPDATE_GOLDEN=1, and look at the difference"
        );
    }
}
