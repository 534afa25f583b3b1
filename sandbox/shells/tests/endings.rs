//! Commands that end at an unfortunate moment.

#![allow(clippy::unwrap_used, reason = "this is test code, also outside of test functions")]

use sandbox_shells::{Key, Signal};
use sandbox_test_support::{Home, ended, run, start_of, test, until_printed};

/// If Ctrl-C arrives when the program has died, it reaches the shell during its report, and Linux discards output
/// that the terminal has not delivered.
#[test]
fn the_code_is_known_however_fast_signals_follow_each_other() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        let stubborn = "bash -c \"trap '' INT TERM; echo up; while :; do sleep 0.1; done\"";
        for round in 0..30 {
            let job = shell.run(stubborn).await.unwrap();
            until_printed(&shell, start_of(&job).await, "up").await;
            shell.press(vec![Key::interrupt()]).await.unwrap();
            shell.signal(Signal::Terminate).await.unwrap();
            shell.signal(Signal::Kill).await.unwrap();
            let code = ended(&job).await.exit_code;
            // The interrupt may arrive before the shell has collected the program's exit code.
            assert!(matches!(code, 137 | 130), "round {round}: {code}");
        }
        assert_eq!(run(&shell, "echo after").await, (0, "after\n".into()));
        shells.shut_down().await.unwrap();
    });
}
