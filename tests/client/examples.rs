use harness::{Program, binary, run_directory};

/// Runs an example with `bridge-daemon run`, in the root of the repository.
fn run(example: &[&str]) -> Vec<String> {
    let directory = run_directory();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let programs = binary("bridge-daemon").parent().unwrap().to_owned();
    let path = std::env::join_paths(
        std::iter::once(programs).chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    )
    .unwrap();
    let mut command = harness::command(binary("bridge-daemon"));
    command.args(["run", "--chat-command", "./examples/calculator.sh", "--"]).args(example);
    command.current_dir(root).env("XDG_RUNTIME_DIR", directory.path()).env("PATH", path);
    let mut program = Program::start(&mut command);
    assert!(program.wait().success(), "{}", program.stderr());
    program.rest()
}

#[test]
fn the_shell_example_prints_the_answer() {
    assert_eq!(run(&["./examples/ask.sh", "What is 20+22?"]), ["20+22 = 42"]);
}

#[test]
fn the_rust_example_streams_the_answer() {
    let example = binary("rust-client-example");
    assert_eq!(run(&[example.to_str().unwrap()]), ["2+2 = 4", "(conversation conversation-1)"]);
}
