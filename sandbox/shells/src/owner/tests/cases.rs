//! Cases that random steps rarely produce, or whose expected result is more specific than "unknown".

use super::{
    Rule,
    bash::Mode,
    terminal::Digests,
    world::{Check, World},
};
use crate::state::{Ended, Phase};

type Case = (&'static str, fn(World) -> Check);

const CASES: &[Case] = &[
    ("a command has its own exit code", code_of_a_command),
    ("the owner waits for a program of PROMPT_COMMAND", program_of_the_prompt),
    ("a nonce that was lost with its owner is renewed", renewed_nonce),
    ("a start marker does not prove that the end marker will be accepted", renewed_before_start),
    ("a command that cannot report its end is given up", given_up),
    ("recorder and shell die together", recorder_with_shell),
    ("the recorder dies soon after the shell", recorder_after_shell),
    ("a recorder that dies before it opens the log is replaced", unborn_recorder),
    ("a report that Ctrl-C has discarded is requested again", discarded_report),
    ("an interrupted command that has not begun never does", cancelled),
    ("closing does not wait for a tmux that does not answer", silent_tmux),
];

/// Runs all cases, with one rule broken or none.
pub(super) fn all(broken: Option<Rule>) -> Check {
    CASES.iter().try_for_each(|(name, case)| {
        case(World::new(broken)).map_err(|violation| format!("{name}: {violation}"))
    })
}

#[test]
fn all_cases_end_well() {
    if let Err(violation) = all(None) {
        panic!("{violation}");
    }
}

fn expect(holds: bool, what: &str) -> Check {
    if holds { Ok(()) } else { Err(what.into()) }
}

/// A text that takes some steps.
const LONG: u8 = 9;

impl World {
    /// Lets everything run for some time.
    fn live_for(&mut self, time: u64) -> Check {
        let end = self.now + time;
        while self.now < end {
            while self.go_on()? {}
            self.pass(10)?;
        }
        Ok(())
    }

    fn until_begun(&mut self) -> Check {
        for _ in 0..1000 {
            if matches!(
                self.terminal.bash.as_ref().map(|bash| bash.mode),
                Some(Mode::Evaluating(..))
            ) {
                return Ok(());
            }
            self.go_on()?;
        }
        Err("the command does not begin".into())
    }

    fn code_of(&self, text: u64) -> Option<(i32, Ended)> {
        let (seq, _) = self.handed_over.iter().find(|(_, handed)| **handed == text)?;
        let result = self.jobs.get(seq)?.result.as_ref()?;
        Some((result.exit_code, result.ended.clone()))
    }

    fn expect_code(&self, text: u64) -> Check {
        let code = i32::try_from(text % 100).unwrap();
        let has = self.code_of(text);
        expect(has == Some((code, Ended::AtPrompt)), &format!("its code is {has:?}"))
    }

    /// Checks that the command has the exit code of its shell, and that the next command runs soon.
    fn expect_replacement(&mut self, text: u64) -> Check {
        self.live_for(5000)?;
        let has = self.code_of(text);
        expect(has == Some((7, Ended::ShellExited)), &format!("it has {has:?}"))?;
        self.expect_next_command()
    }

    fn expect_next_command(&mut self) -> Check {
        let text = self.run(LONG)?;
        self.live_for(1000)?;
        self.expect_code(text)
    }
}

fn code_of_a_command(mut world: World) -> Check {
    world.live_for(100)?;
    world.expect_next_command()?;
    world.expect_next_command()
}

fn program_of_the_prompt(mut world: World) -> Check {
    world.live_for(100)?;
    world.terminal.bash.as_mut().unwrap().mode = Mode::ByHand;
    let text = world.run(LONG)?;
    world.live_for(50)?;
    world.terminal.bash.as_mut().unwrap().mode = Mode::Prompt;
    world.live_for(1000)?;
    world.expect_code(text)
}

/// The owner is killed after it has written the digest of a new end nonce, and before it has given that nonce to the
/// shell.
fn renewed_nonce(mut world: World) -> Check {
    world.live_for(100)?;
    let text = world.run(LONG)?;
    world.until_begun()?;
    let end = world.fresh();
    world.digests.end = end;
    world.kill_owner(usize::MAX);
    world.live_for(100)?;
    world.adopt()?;
    world.live_for(10_000)?;
    world.expect_code(text)
}

/// As in [`renewed_nonce`], and the start marker reaches the next owner.
fn renewed_before_start(mut world: World) -> Check {
    world.live_for(100)?;
    let text = world.run(LONG)?;
    world.tmux()?;
    world.shell()?;
    let end = world.fresh();
    world.digests.end = end;
    world.kill_owner(usize::MAX);
    world.adopt()?;
    world.live_for(10_000)?;
    world.expect_code(text)
}

/// The digests on disk are of a command that the shell does not know.
fn given_up(mut world: World) -> Check {
    world.live_for(100)?;
    world.run(LONG)?;
    world.live_for(1000)?;
    world.kill_owner(0);
    world.digests = Digests { seq: 2, is_command: true, start: 0, end: 0 };
    world.handed_over.insert(2, 0);
    world.adopt()?;
    world.come_to_rest()?;
    let given_up = world.jobs.get(&2).and_then(|job| job.result.clone());
    expect(given_up.is_some_and(|result| result.exit_code == -1), "it is given up")
}

fn recorder_with_shell(mut world: World) -> Check {
    world.live_for(100)?;
    let text = world.run(LONG)?;
    world.until_begun()?;
    world.shell_died(7);
    world.terminal.recorder = None;
    world.expect_replacement(text)
}

/// The next shell is running, and its first markers are on their way to the recorder.
fn recorder_after_shell(mut world: World) -> Check {
    world.live_for(100)?;
    let text = world.run(LONG)?;
    world.until_begun()?;
    world.shell_died(7);
    while world.terminal.bash.is_none() {
        if !world.go_on()? {
            world.pass(10)?;
        }
    }
    while world.shell()? {}
    world.terminal.printed.clear();
    world.terminal.recorder = None;
    world.expect_replacement(text)
}

fn unborn_recorder(mut world: World) -> Check {
    world.live_for(100)?;
    world.terminal.recorder = None;
    // The next recorder is killed before it has opened the log.
    while world.terminal.recorder.is_none() {
        world.notice()?;
        world.tmux()?;
    }
    world.terminal.recorder = None;
    world.live_for(5000)?;
    world.expect_next_command()
}

fn discarded_report(mut world: World) -> Check {
    world.live_for(100)?;
    let text = world.run(LONG)?;
    world.until_begun()?;
    while world.shell()? {}
    // The interrupt discards output that the terminal has not delivered.
    world.interrupt()?;
    world.tmux()?;
    world.live_for(5000)?;
    world.expect_code(text)
}

fn cancelled(mut world: World) -> Check {
    world.live_for(100)?;
    let text = world.run(LONG)?;
    world.interrupt()?;
    world.live_for(5000)?;
    let has = world.code_of(text);
    expect(has == Some((-1, Ended::AtPrompt)), &format!("it has {has:?}"))?;
    expect(world.texts[&text].evaluated == 0, "it has begun")
}

fn silent_tmux(mut world: World) -> Check {
    world.live_for(100)?;
    world.run(LONG)?;
    world.terminal.is_stopped = true;
    world.ask(crate::owner::Request::Close)?;
    world.pass(300)?;
    expect(world.calls.is_empty(), "a caller is still waiting")?;
    let phase = world.owner.as_ref().unwrap().status().phase;
    expect(phase == Phase::Closed, &format!("it is {phase:?}"))
}
