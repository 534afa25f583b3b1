//! The owner in a simulated world, without tmux: markers are lost, late, doubled and out of order; owner, recorder,
//! shell and tmux are killed at any step; callers interrupt and close at any step.
//!
//! What must hold, whatever happens (see `checks.rs`):
//!
//! - A text is evaluated at most once, and never after its result was told.
//! - Every call is answered once, and every command has one result, which is the true one or says that it is unknown.
//! - Once nothing disturbs it any more, the machine comes to rest.
//! - Closing is answered soon, although tmux is stopped.
//!
//! Each rule of the owner is there for one of these. [`every_rule_matters`] breaks one at a time and finds the harm.

mod bash;
mod cases;
mod checks;
mod perform;
mod rest;
mod step;
mod terminal;
mod world;

use proptest::{
    collection::vec,
    test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner},
};

use step::Step;
use world::World;

/// Rules that a test can break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    CancelTakesNoncesBack,
    CloseAnswersTheWaiting,
    CloseDoesNotWaitForTmux,
    FailedStartsAreBounded,
    GiveUpInTheEnd,
    GivenUpByTheLedgerFirst,
    LedgerBeforeLaunch,
    MarkersCountForTheirCommand,
    OneCommandAtATime,
    PromptProgramsMayEnd,
    RecheckAfterGap,
    RecheckAfterInterrupt,
    RecheckInherited,
    RecordersAreAwaited,
    RenewTheEndNonce,
    ReportThePredecessor,
    ResendOnlyWhatWasReadBack,
    SlowStartsAreKilled,
}

const RULES: [Rule; 18] = [
    Rule::CancelTakesNoncesBack,
    Rule::CloseAnswersTheWaiting,
    Rule::CloseDoesNotWaitForTmux,
    Rule::FailedStartsAreBounded,
    Rule::GiveUpInTheEnd,
    Rule::GivenUpByTheLedgerFirst,
    Rule::LedgerBeforeLaunch,
    Rule::MarkersCountForTheirCommand,
    Rule::OneCommandAtATime,
    Rule::PromptProgramsMayEnd,
    Rule::RecheckAfterGap,
    Rule::RecheckAfterInterrupt,
    Rule::RecheckInherited,
    Rule::RecordersAreAwaited,
    Rule::RenewTheEndNonce,
    Rule::ReportThePredecessor,
    Rule::ResendOnlyWhatWasReadBack,
    Rule::SlowStartsAreKilled,
];

/// Steps in one life of a world.
const STEPS: usize = 120;

/// Lets a world live through some steps and come to rest.
fn live(broken: Option<Rule>, steps: &[Step]) -> Result<(), String> {
    let mut world = World::new(broken);
    for step in steps {
        world.take(*step)?;
    }
    world.come_to_rest()
}

fn runner(cases: u32, shrinks: u32) -> TestRunner {
    let config =
        Config { cases, max_shrink_iters: shrinks, failure_persistence: None, ..Config::default() };
    // The same worlds each time, so that a broken rule is found or not found, and nothing in between.
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

/// What goes wrong in many random worlds, if anything does.
fn violation(broken: Option<Rule>, cases: u32, shrinks: u32) -> Option<String> {
    let lives = |numbers: Vec<(u16, u8)>| {
        let steps = numbers.iter().map(|(which, detail)| Step::of(*which, *detail));
        let mut steps: Vec<_> = steps.collect();
        // In half of the worlds the owner must find everything out without callers that wait.
        if numbers[0].1.is_multiple_of(2) {
            steps.retain(|step| !step.loses_unseen());
        }
        live(broken, &steps)
            .map_err(|violation| TestCaseError::fail(format!("{violation}\nafter {steps:?}")))
    };
    let numbers = vec((0..u16::MAX, 0..u8::MAX), 1..STEPS);
    runner(cases, shrinks).run(&numbers, lives).err().map(|error| error.to_string())
}

#[test]
fn whatever_happens_texts_run_once_and_everybody_is_answered() {
    let cases = std::env::var("OWNER_CASES").map_or(3000, |cases| cases.parse().unwrap());
    if let Some(violation) = violation(None, cases, 5000) {
        panic!("{violation}");
    }
}

#[test]
fn every_rule_matters() {
    let is_harmless =
        |rule: &Rule| cases::all(Some(*rule)).is_ok() && violation(Some(*rule), 4000, 0).is_none();
    let harmless: Vec<_> = RULES.into_iter().filter(is_harmless).collect();
    assert!(harmless.is_empty(), "nobody notices that these are broken: {harmless:?}");
}
