//! Processes are killed at random moments: nothing that was logged is lost, and the shell continues.
//!
//! A seed determines the moments. On each machine they hit other steps of the work, which is intended. The seed of a
//! failed run is printed, and `SANDBOX_SEED` sets it.

#![allow(clippy::unwrap_used, reason = "this is test code, also outside of test functions")]

use std::{env, fs, process::Command, time::Duration};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use sandbox_shells::{Config, Ended, Key, Phase, ProcessId, Progress, Shell, Wait};
use sandbox_test_support::{
    Home, Owner, control_client, ended, id, kill, processes_with, recorders, run, start_of, test,
    text_of, until_changed, until_gone, until_printed, within,
};

const ROUNDS: usize = 24;

/// The text in the log where a recorder was killed.
const GAP: &str = "[output is missing here: the recorder was killed]";

/// The number of lines that each command prints, so that there is time to kill a process.
const LINES: usize = 300;

fn seeded() -> StdRng {
    let seed = env::var("SANDBOX_SEED").map_or(5, |seed| seed.parse().unwrap());
    eprintln!("to repeat: SANDBOX_SEED={seed}");
    StdRng::seed_from_u64(seed)
}

/// Sleeps for a random time. It waits for no event on purpose: the moment is what the test varies.
async fn any_moment(random: &mut StdRng, at_most: Duration) {
    tokio::time::sleep(at_most.mul_f64(random.random())).await;
}

fn log(home: &Home) -> Vec<u8> {
    fs::read(home.root().join("shells/a/log")).unwrap_or_default()
}

/// Checks that all lines are there in order, or that the gap is marked.
fn check_lines(output: &str) {
    let numbers = output.lines().filter_map(|line| line.strip_prefix("line ")?.parse().ok());
    let numbers: Vec<usize> = numbers.collect();
    assert!(numbers.is_sorted(), "{output}");
    if numbers.len() < LINES {
        assert!(output.contains(GAP), "{} lines and no gap: {output}", numbers.len());
    }
}

fn printing(code: i32) -> String {
    format!("for i in {{1..{LINES}}}; do echo line $i; done; (exit {code})")
}

#[test]
fn owners_may_be_killed_at_any_moment() {
    test(async {
        let (home, mut random) = (Home::new(), seeded());
        let mut known = 0;
        for round in 0..ROUNDS {
            let owner = Owner::run(&home, &printing(3));
            any_moment(&mut random, Duration::from_millis(80)).await;
            owner.kill();
            let logged = log(&home);
            let shells = home.open().await;
            let shell = match shells.get(&id("a")) {
                Some(shell) => {
                    assert!(log(&home).starts_with(&logged), "what was logged is there");
                    shell
                }
                None => {
                    assert_eq!(known, 0, "only an incompletely created shell may be gone");
                    home.shell(&shells, "a").await
                }
            };
            if let Some(job) = shell.latest().filter(|job| job.seq() > known) {
                let result = ended(&job).await;
                assert_eq!((result.exit_code, result.lost), (3, 0), "round {round}");
                let output = text_of(&shell, &result);
                check_lines(&output);
                assert!(!output.contains(GAP), "the recorder is not affected");
            }
            assert_eq!(run(&shell, format!("echo {round}")).await, (0, format!("{round}\n")));
            known = shell.latest().unwrap().seq();
            drop((shell, shells));
        }
        home.open().await.shut_down().await.unwrap();
        assert_eq!(processes_with(home.root().to_str().unwrap()), [""; 0]);
    });
}

#[test]
fn owners_may_be_killed_while_a_shell_is_created() {
    test(async {
        let mut random = seeded();
        for _ in 0..ROUNDS / 4 {
            let home = Home::new();
            let owner = Owner::run(&home, "echo never mind");
            any_moment(&mut random, Duration::from_millis(60)).await;
            owner.kill();
            let shells = home.open().await;
            let shell = match shells.get(&id("a")) {
                Some(shell) => shell,
                None => home.shell(&shells, "a").await,
            };
            if let Some(job) = shell.latest() {
                ended(&job).await;
            }
            assert_eq!(run(&shell, "echo born").await, (0, "born\n".into()));
            shells.shut_down().await.unwrap();
            assert_eq!(processes_with(home.root().to_str().unwrap()), [""; 0]);
        }
    });
}

/// The owner is killed after it has sent a command, and before the shell has received the key.
#[test]
fn a_command_that_never_reached_its_shell_is_sent_by_the_next_owner() {
    test(async {
        let home = Home::new();
        create_shell_that_misses_the_run_key(&home).await;
        let owner = Owner::run(&home, "echo second; (exit 4)");
        until_expected(&home, "2 command").await;
        owner.kill();
        let shells = home.open().await;
        let shell = shells.get(&id("a")).unwrap();
        let job = shell.latest().unwrap();
        let result = ended(&job).await;
        assert_eq!((job.seq(), result.exit_code), (2, 4));
        assert_eq!(text_of(&shell, &result), "second\n");
        shells.shut_down().await.unwrap();
    });
}

/// Creates a shell without an owner at whose prompt the next key is inserted literally, so that the run key has no
/// effect.
async fn create_shell_that_misses_the_run_key(home: &Home) {
    let shells = home.open().await;
    let shell = home.shell(&shells, "a").await;
    assert_eq!(run(&shell, "echo first").await, (0, "first\n".into()));
    shell.press(["C-v".parse::<Key>().unwrap()]).await.unwrap();
}

/// Waits until an owner has written digests that start with this text.
async fn until_expected(home: &Home, wanted: &str) {
    let file = home.root().join("shells/a/expected");
    let is_wanted = || fs::read_to_string(&file).is_ok_and(|text| text.starts_with(wanted));
    until_changed(&file, "the command", is_wanted).await;
}

#[test]
fn a_cancelled_command_is_not_run_by_the_next_owner() {
    test(async {
        let home = Home::new();
        create_shell_that_misses_the_run_key(&home).await;
        let shells = home.open().await;
        let shell = shells.get(&id("a")).unwrap();
        let job = shell.run("echo ran >ran").await.unwrap();
        shell.press([Key::interrupt()]).await.unwrap();
        assert_eq!(ended(&job).await.exit_code, -1);
        drop((job, shell, shells));
        for _ in 0..2 {
            let shells = home.open().await;
            let shell = shells.get(&id("a")).unwrap();
            assert_eq!(shell.latest().unwrap().result().unwrap().exit_code, -1);
            assert_eq!(shell.status().phase, Phase::Idle);
        }
        let shells = home.open().await;
        let shell = shells.get(&id("a")).unwrap();
        assert_eq!(run(&shell, "ls").await, (0, String::new()));
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn a_command_whose_markers_are_late_is_not_run_again_by_the_next_owner() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        run(&shell, "true").await;
        drop((shell, shells));
        let recorder = recorders(&home)[0].to_string();
        let signal = |name: &str| {
            let sent = Command::new("kill").args([name, &recorder]).status();
            assert!(sent.unwrap().success());
        };
        signal("-STOP");
        let owner = Owner::run(&home, "echo ran >>times; echo did");
        let times = home.work().join("times");
        until_changed(&home.work(), "the command", || times.exists()).await;
        owner.kill();
        let shells = home.open().await;
        let shell = shells.get(&id("a")).unwrap();
        let job = shell.latest().unwrap();
        // Longer than the time after which a command that has not begun is sent again.
        let wait = Wait { limit: Some(Duration::from_secs(5)), ..Wait::default() };
        assert!(matches!(job.wait(wait).await.unwrap(), Progress::Running(_)));
        signal("-CONT");
        let result = ended(&job).await;
        assert_eq!((result.exit_code, &*text_of(&shell, &result)), (0, "did\n"));
        assert_eq!(fs::read_to_string(times).unwrap(), "ran\n");
        shells.shut_down().await.unwrap();
    });
}

/// The nonces of a starting shell were lost with its owner: the shell is at its prompt, and its report cannot be
/// confirmed.
#[test]
fn the_next_owner_requests_a_lost_report_of_the_first_prompt() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        assert_eq!(run(&shell, "x=kept; touch once").await, (0, String::new()));
        drop((shell, shells));
        let expected = home.root().join("shells/a/expected");
        fs::write(expected, "9 start-up 00 00\n").unwrap();
        fs::remove_file(home.work().join("once")).unwrap();
        let shells = home.open().await;
        let shell = shells.get(&id("a")).unwrap();
        assert_eq!(run(&shell, "echo $x; ls").await, (0, "kept\n".into()), "the same shell");
        assert_eq!(shell.status().restarts, 0);
        shells.shut_down().await.unwrap();
    });
}

async fn until_recorders(home: &Home, number: usize) {
    let index = home.root().join("shells/a/index");
    until_changed(&index, "another recorder", || recorders(home).len() >= number).await;
}

/// Checks that the next command after a gap is recorded completely, with its exit code.
async fn check_after_gap(home: &Home, shell: &Shell, deaths: usize) {
    until_recorders(home, deaths + 1).await;
    assert_eq!(run(shell, "echo whole; (exit 5)").await, (5, "whole\n".into()));
}

#[test]
fn recorders_may_be_killed_at_any_moment() {
    test(async {
        let (home, mut random) = (Home::new(), seeded());
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        for round in 0..ROUNDS {
            let job = shell.run(printing(3)).await.unwrap();
            any_moment(&mut random, Duration::from_millis(12)).await;
            kill(ProcessId::of(recorders(&home)[round]).unwrap());
            let logged = log(&home);
            let result = ended(&job).await;
            assert_eq!(result.exit_code, 3, "round {round}");
            assert!(log(&home).starts_with(&logged), "what was logged is there");
            check_lines(&text_of(&shell, &result));
            check_after_gap(&home, &shell, round + 1).await;
        }
        assert_eq!(shell.status().restarts, 0);
        shells.shut_down().await.unwrap();
    });
}

/// Kills a process. False if it has ended already.
fn try_to_kill(process: ProcessId) -> bool {
    Command::new("kill").args(["-9", &process.pid.to_string()]).output().unwrap().status.success()
}

/// The owner notices both deaths and does not wait for the start limit of a shell.
#[test]
fn a_recorder_and_its_shell_may_be_killed_together() {
    test(async {
        let (home, mut random) = (Home::new(), seeded());
        let start_limit = Duration::from_secs(3600);
        let shells = home.open_with(Config { start_limit, ..home.config() }).await;
        let shell = home.shell(&shells, "a").await;
        for round in 0..ROUNDS {
            let job = shell.run(printing(3)).await.unwrap();
            any_moment(&mut random, Duration::from_millis(12)).await;
            // A process of the last round may end before it is killed. Its successor is the victim then.
            let second = within("a victim", async {
                loop {
                    let recorder = recorders(&home).last().copied().and_then(ProcessId::of);
                    let mut victims = [recorder, Some(shell.status().shell)];
                    victims.rotate_left(round % 2);
                    if let [Some(first), Some(second)] = victims
                        && try_to_kill(first)
                    {
                        break second;
                    }
                    tokio::task::yield_now().await;
                }
            })
            .await;
            any_moment(&mut random, Duration::from_millis(if round % 3 == 0 { 1 } else { 120 }))
                .await;
            // The recorder may have ended with the shell, and the other way round.
            try_to_kill(second);
            let result = ended(&job).await;
            // The command ended before its shell, or with it, or before any marker was recorded.
            assert!([3, 137, -1].contains(&result.exit_code), "round {round}: {result:?}");
            // A command that was handed over to the dying shell has ended with it.
            let next = loop {
                let next = within("the next shell", shell.run("echo whole; (exit 5)")).await;
                let next = ended(&next.unwrap()).await;
                if next.ended == Ended::AtPrompt {
                    break next;
                }
            };
            assert_eq!(next.exit_code, 5, "round {round}");
            let output = text_of(&shell, &next);
            assert!(output == "whole\n" || output.contains(GAP), "round {round}: {output:?}");
        }
        shells.shut_down().await.unwrap();
        assert_eq!(processes_with(home.root().to_str().unwrap()), [""; 0]);
    });
}

#[test]
fn the_next_owner_replaces_a_recorder_that_died_without_an_owner() {
    test(async {
        for mode in ["emacs", "vi"] {
            let home = Home::new();
            let command = format!("set -o {mode}; echo on; read -r x; echo lost; (exit 4)");
            let mut owner = Owner::run(&home, &command);
            owner.until_printed("on");
            owner.kill();
            let recorder = ProcessId::of(recorders(&home)[0]).unwrap();
            kill(recorder);
            within("the end of the recorder", recorder.ended()).await.unwrap();
            // The command ends while there is no recorder.
            let mut tmux = Command::new("tmux");
            tmux.arg("-S").arg(home.root().join("tmux")).env_remove("TMUX");
            let typed = tmux.args(["send-keys", "-t", "=s-a:", "Enter"]).status();
            assert!(typed.unwrap().success());
            // An owner that ends before its first recheck has only replaced the recorder.
            drop(home.open().await);
            let shells = home.open().await;
            let shell = shells.get(&id("a")).expect("the shell is found again");
            let result = ended(&shell.latest().unwrap()).await;
            assert_eq!(result.exit_code, 4, "{mode}");
            assert!(text_of(&shell, &result).starts_with("on\n"));
            assert!(String::from_utf8_lossy(&log(&home)).contains(GAP), "the gap is marked");
            check_after_gap(&home, &shell, 1).await;
            shells.shut_down().await.unwrap();
        }
    });
}

/// The recorder and the owner were killed before the start of a command was recorded.
#[test]
fn a_command_that_may_have_run_is_not_run_again() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        run(&shell, "true").await;
        let recorder = ProcessId::of(recorders(&home)[0]).unwrap();
        drop((shell, shells));
        kill(recorder);
        within("the end of the recorder", recorder.ended()).await.unwrap();
        let directory = home.root().join("shells/a");
        fs::write(directory.join("command"), "echo again >>times").unwrap();
        fs::write(directory.join("expected"), "2 command 00 00\n").unwrap();
        drop(home.open().await);
        let shells = home.open().await;
        let shell = shells.get(&id("a")).unwrap();
        assert_eq!(ended(&shell.latest().unwrap()).await.exit_code, -1);
        assert_eq!(run(&shell, "cat times 2>&1; echo next").await.1.lines().last(), Some("next"));
        assert!(!home.work().join("times").exists());
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn control_clients_may_be_killed_at_any_moment() {
    test(async {
        let (home, mut random) = (Home::new(), seeded());
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        let server = shells.server().await.unwrap();
        let mut former = None;
        for round in 0..ROUNDS {
            let client = control_client(&home, former).await;
            former = Some(client);
            let job = shell.run(printing(3)).await.unwrap();
            any_moment(&mut random, Duration::from_millis(12)).await;
            kill(client);
            let result = ended(&job).await;
            assert_eq!((result.exit_code, result.lost), (3, 0), "round {round}");
            let output = text_of(&shell, &result);
            check_lines(&output);
            assert!(!output.contains(GAP));
        }
        assert_eq!(shell.status().restarts, 0);
        // Attached people may detach all other clients, or close a tmux session that means nothing to them.
        for command in [["detach-client", "-s", "=keeper"], ["kill-session", "-t", "=keeper"]] {
            former = Some(control_client(&home, former).await);
            let mut tmux = Command::new("tmux");
            tmux.arg("-S").arg(home.root().join("tmux")).args(command).env_remove("TMUX");
            assert!(tmux.status().unwrap().success());
            assert_eq!(run(&shell, "echo still here").await, (0, "still here\n".into()));
        }
        control_client(&home, former).await;
        assert_eq!(shells.server().await.unwrap(), server);
        shells.shut_down().await.unwrap();
        assert_eq!(processes_with(home.root().to_str().unwrap()), [""; 0]);
    });
}

#[test]
fn keepers_may_be_killed_at_any_moment() {
    test(async {
        let (home, mut random) = (Home::new(), seeded());
        let lease = Duration::from_secs(1);
        let shells = home.open_with(Config { lease, ..home.config() }).await;
        let shell = home.shell(&shells, "a").await;
        let mut former = None;
        for _ in 0..3 {
            let job = shell.run(printing(3)).await.unwrap();
            any_moment(&mut random, Duration::from_millis(20)).await;
            let keeper = another_keeper(&home, former).await;
            kill(keeper);
            former = Some(keeper);
            let result = ended(&job).await;
            assert_eq!(result.exit_code, 3);
            let output = text_of(&shell, &result);
            check_lines(&output);
            assert!(!output.contains(GAP));
        }
        another_keeper(&home, former).await;
        let job = shell.run("echo still here; sleep 1000").await.unwrap();
        until_printed(&shell, start_of(&job).await, "still here").await;
        let server = shells.server().await.unwrap();
        drop((job, shell, shells));
        // The last keeper ends the shells after the lease, as the first one would have.
        within("the end of the lease", server.ended()).await.unwrap();
        until_gone(home.root().to_str().unwrap()).await;
    });
}

/// Waits until there is a keeper other than the former one, and returns it.
async fn another_keeper(home: &Home, former: Option<ProcessId>) -> ProcessId {
    within("a keeper", async {
        loop {
            let mut ask = tokio::process::Command::new("tmux");
            ask.arg("-S").arg(home.root().join("tmux")).env_remove("TMUX");
            ask.args(["display-message", "-p", "-t", "=keeper:", "#{pane_pid}"]);
            let pid = String::from_utf8(ask.output().await.unwrap().stdout).unwrap();
            let keeper = pid.trim().parse().ok().and_then(ProcessId::of);
            if let Some(keeper) =
                keeper.filter(|keeper| keeper.is_alive() && Some(*keeper) != former)
            {
                return keeper;
            }
        }
    })
    .await
}
