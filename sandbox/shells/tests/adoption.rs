//! Adoption: what the next owner finds, and what it must not remove.

#![allow(clippy::unwrap_used, reason = "this is test code, also outside of test functions")]

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    process::{Command, Stdio},
};

use sandbox_isolation::{Network, Policy};
use sandbox_shells::{Config, Ended, Error, Phase, Shells};
use sandbox_test_support::{
    Home, Owner, ended, helper, id, kill, run, start_of, test, text_of, until_changed, within,
};

#[test]
fn an_owner_that_lacks_descriptors_removes_nothing() {
    test(async {
        let home = Home::new();
        let mut owner = Owner::run(&home, "echo on; read -r x; echo \"got $x\"");
        owner.until_printed("on");
        owner.kill();
        let log = home.root().join("shells/a/log");
        let (mut failed, mut found) = (0, 0);
        // With each additional descriptor the owner fails at a later step.
        for limit in 8..40 {
            let mut command = Command::new("sh");
            command.args(["-c", "ulimit -n $0; exec \"$@\"", &limit.to_string()]);
            command.arg(helper()).arg("list").arg(home.root());
            let output = command.stdin(Stdio::null()).output().unwrap();
            if output.status.success() {
                let listed = String::from_utf8_lossy(&output.stdout);
                assert!(listed.contains('a'), "with {limit} descriptors: {listed:?}");
                found += 1;
            } else {
                failed += 1;
            }
            assert!(log.exists(), "with {limit} descriptors: {output:?}");
        }
        assert!(failed > 3 && found > 3, "{failed} have failed, {found} have not");
        let shells = home.open().await;
        let shell = shells.get(&id("a")).expect("the shell is there");
        let job = shell.latest().unwrap();
        start_of(&job).await;
        shell.type_bytes("it\r").await.unwrap();
        let result = ended(&job).await;
        assert_eq!((result.exit_code, &*text_of(&shell, &result)), (0, "on\nit\ngot it\n"));
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn an_owner_with_an_unenforceable_policy_removes_nothing() {
    test(async {
        let home = Home::new();
        let mut owner = Owner::run(&home, "echo on; read -r x; echo \"got $x\"");
        owner.until_printed("on");
        owner.kill();
        let network = Network::Only { connect: vec![], listen: vec![], udp: false };
        let policy = Policy { network, ..Policy::default() };
        let refused = Shells::open(Config { policy, ..home.config() }).await.unwrap_err();
        assert!(refused.to_string().contains("cannot restrict TCP"), "{refused}");
        let shells = home.open().await;
        let shell = shells.get(&id("a")).expect("the shell is there");
        let job = shell.latest().unwrap();
        start_of(&job).await;
        shell.type_bytes("it\r").await.unwrap();
        assert_eq!(ended(&job).await.exit_code, 0);
        shells.shut_down().await.unwrap();
    });
}

/// Only root can create a directory that belongs to another user.
#[test]
fn a_state_directory_of_another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can give a directory away");
        return;
    }
    test(async {
        let home = Home::new();
        fs::create_dir_all(home.root()).unwrap();
        std::os::unix::fs::chown(home.root(), Some(65534), None).unwrap();
        let refused = Shells::open(home.config()).await.unwrap_err();
        assert!(refused.to_string().contains("belongs to another user"), "{refused}");
    });
}

#[test]
fn a_directory_that_is_not_ours_is_refused_and_stays_as_it_is() {
    test(async {
        let home = Home::new();
        fs::create_dir(home.root()).unwrap();
        fs::set_permissions(home.root(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(home.root().join("letter"), "dear").unwrap();
        let mode = || fs::metadata(home.root()).unwrap().permissions().mode() & 0o777;
        let refused = Shells::open(home.config()).await.unwrap_err().to_string();
        assert!(refused.contains("chmod 700") && refused.contains(home.root().to_str().unwrap()));
        assert_eq!(mode(), 0o755);
        fs::set_permissions(home.root(), fs::Permissions::from_mode(0o700)).unwrap();
        let refused = Shells::open(home.config()).await.unwrap_err().to_string();
        assert!(refused.contains("letter") && refused.contains("empty directory"), "{refused}");
        assert_eq!(fs::read_dir(home.root()).unwrap().count(), 1);
    });
}

#[test]
fn only_our_own_files_are_removed_from_a_state_directory() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        fs::write(home.root().join("letter"), "dear").unwrap();
        fs::create_dir(home.root().join("photos")).unwrap();
        shells.shut_down().await.unwrap();
        let entries = fs::read_dir(home.root()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut left: Vec<_> = entries.collect();
        left.sort();
        // The lock marks the directory as ours, so that it can be used again.
        assert_eq!(left, ["letter", "photos", "run-bridge.lock"]);
        home.open().await.shut_down().await.unwrap();
        assert_eq!(fs::read(home.root().join("letter")).unwrap(), b"dear");
    });
}

#[test]
fn the_latest_command_is_known_although_its_shell_and_its_owner_are_gone() {
    test(async {
        let home = Home::new();
        let (begun, gate) = (home.work().join("begun"), home.work().join("gate"));
        Command::new("mkfifo").arg(&gate).status().unwrap();
        // A bash that waits at a gate before it prints anything.
        let bash = home.work().join("bash");
        let script = "#!/bin/sh\nif rm DIR/slow; then touch DIR/begun; read -r x <DIR/gate; fi\nexec bash \"$@\"\n";
        fs::write(&bash, script.replace("DIR", home.work().to_str().unwrap())).unwrap();
        fs::set_permissions(&bash, fs::Permissions::from_mode(0o700)).unwrap();
        let shells = home.open_with(Config { bash, ..home.config() }).await;
        let shell = home.shell(&shells, "a").await;
        let job = shell.run("echo last words; touch slow; exit 7").await.unwrap();
        until_changed(&home.work(), "the next shell", || begun.exists()).await;
        assert!(job.result().is_none());
        drop((job, shell, shells));
        let shells = home.open().await;
        let shell = shells.get(&id("a")).expect("the shell is found again");
        assert_eq!(shell.status().phase, Phase::Starting);
        fs::write(gate, "go\n").unwrap();
        let job = shell.latest().expect("the command is known");
        let result = ended(&job).await;
        assert_eq!((result.exit_code, &result.ended), (7, &Ended::ShellExited));
        assert_eq!(text_of(&shell, &result), "last words\nexit\n");
        drop((job, shell, shells));

        // Later, after another shell was killed at its prompt.
        let index = home.root().join("shells/a/index");
        let ends = || fs::read_to_string(&index).unwrap().matches(" E;").count();
        for (command, code, next) in [("echo one; exit 9", 9, 2), ("echo two; (exit 4)", 4, 2)] {
            let shells = home.open().await;
            let shell = shells.get(&id("a")).unwrap();
            let known = ends();
            let before = ended(&within(command, shell.run(command)).await.unwrap()).await;
            until_changed(&index, "the prompt", || ends() > known).await;
            within("the prompt", async {
                while shell.status().phase != Phase::Idle {
                    tokio::task::yield_now().await;
                }
            })
            .await;
            kill(shell.status().shell);
            until_changed(&index, "the next shell", || ends() >= known + next).await;
            drop((shell, shells));
            let shells = home.open().await;
            let shell = shells.get(&id("a")).unwrap();
            let job = shell.latest().expect("the command is known");
            let after = ended(&job).await;
            assert_eq!((after.exit_code, &after), (code, &before));
            drop((job, shell, shells));
        }
        home.open().await.shut_down().await.unwrap();
    });
}

#[test]
fn an_owner_that_waits_for_the_lock_finds_a_usable_directory() {
    test(async {
        let home = Home::new();
        let first = home.open().await;
        home.shell(&first, "a").await;
        let (ended, next) = tokio::join!(first.shut_down(), Shells::open(home.config()));
        ended.unwrap();
        let next = next.unwrap();
        // The new owner's lock is the one that other processes find.
        assert!(matches!(Shells::open(home.config()).await, Err(Error::RootInUse { .. })));
        let shell = home.shell(&next, "a").await;
        assert_eq!(run(&shell, "echo mine").await, (0, "mine\n".into()));
        next.shut_down().await.unwrap();
        assert_eq!(fs::read_dir(home.root()).unwrap().count(), 0);
    });
}

#[test]
fn a_shell_is_listed_although_its_creation_was_cancelled() {
    test(async {
        let home = Home::new();
        let gate = home.work().join("gate");
        Command::new("mkfifo").arg(&gate).status().unwrap();
        fs::write(home.work().join(".bashrc"), "echo begun; read -r x <~/gate; echo $x").unwrap();
        let shells = home.open().await;
        let log = home.root().join("shells/a/log");
        {
            let making = shells.create(home.spec("a"));
            tokio::pin!(making);
            let begun = async {
                let is_begun = || fs::read_to_string(&log).is_ok_and(|log| log.contains("begun"));
                while !is_begun() || shells.get(&id("a")).is_none() {
                    tokio::task::yield_now().await;
                }
            };
            tokio::select! {
                _ = &mut making => panic!("it waits at the gate"),
                () = within("the start-up file", begun) => {}
            }
        }
        let shell = shells.get(&id("a")).expect("it is listed");
        assert_eq!(shell.status().phase, Phase::Starting);
        fs::write(gate, "go\n").unwrap();
        assert_eq!(run(&shell, "echo made").await, (0, "made\n".into()));
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn a_broken_tmux_is_named_in_the_error() {
    test(async {
        let home = Home::new();
        let tmux = home.work().join("tmux");
        fs::write(&tmux, "#!/bin/sh\necho '%exit not today'\nexit 1\n").unwrap();
        fs::set_permissions(&tmux, fs::Permissions::from_mode(0o700)).unwrap();
        let shells = home.open_with(Config { tmux, ..home.config() }).await;
        let error = shells.create(home.spec("a")).await.unwrap_err().to_string();
        assert!(error.contains("not today") && error.contains("install tmux"), "{error}");
        within("the end", shells.shut_down()).await.unwrap();
        assert_eq!(fs::read_dir(home.root()).unwrap().count(), 0);
    });
}

#[test]
fn new_shells_have_the_environment_of_the_present_owner() {
    test(async {
        let home = Home::new();
        let odd = "a 'b' \"c\" $d ~ #{e} %f;\nNOT=1\n\u{fc}\t\\";
        let run = |name: &str, command: &str, variables: &[(&str, &str)]| {
            let mut owner = Command::new(helper());
            owner.arg("run").arg(home.root()).args([name, command]);
            owner.current_dir(home.work()).env("HOME", home.work()).envs(variables.iter().copied());
            let output = owner.stdin(Stdio::null()).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).unwrap().replace("\r\n", "\n")
        };
        let show = "printf '%s|' \"$ODD\" \"$OLD\" \"${NOT-}\" \"${TMUX-}\"";
        assert_eq!(run("a", show, &[("OLD", "1"), ("ODD", "x\nKEPT=2")]), "x\nKEPT=2|1|||");
        let now = [("ODD", odd), ("KEPT", "3"), ("TMUX", "mine")];
        assert_eq!(run("b", show, &now), format!("{odd}||||"));
        assert_eq!(run("b", "echo $KEPT", &now), "3\n");
        // Also for the replacement of a shell that an earlier owner has started.
        assert_eq!(run("a", "printf %s \"$OLD\"; exec true", &now), "1");
        assert_eq!(run("a", show, &now), format!("{odd}||||"));
        home.open().await.shut_down().await.unwrap();
    });
}
