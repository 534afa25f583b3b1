//! The owner in a simulated world without tmux: markers are lost, late, doubled and reordered; owner, recorder, shell
//! and tmux are killed at any step; callers interrupt and close at any step.
//!
//! Properties that must always hold (see `checks.rs`):
//!
//! - A text is evaluated at most once, and never after its result was reported.
//! - Every call is answered once, and every command has one result, which is correct or says that it is unknown.
//! - Once the disturbances stop, the owner comes to rest.
//! - Closing is answered soon, even if tmux is stopped.
//!
//! Each rule of the owner exists for one of these properties. [`every_rule_matters`] breaks one rule at a time and
//! checks that a property is violated.

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

/// The rules that a test can break.
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

/// The most steps in one simulated world.
const STEPS: usize = 120;

/// Runs a world through some steps and lets it come to rest.
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
    // The same worlds each time, so that the result is reproducible.
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

/// Returns a violation found in many random worlds, if there is one.
fn violation(broken: Option<Rule>, cases: u32, shrinks: u32) -> Option<String> {
    let lives = |numbers: Vec<(u16, u8)>| {
        let steps = numbers.iter().map(|(which, detail)| Step::of(*which, *detail));
        let mut steps: Vec<_> = steps.collect();
        // In half of the worlds the owner must notice everything without the help of waiting callers.
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
