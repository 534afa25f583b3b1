#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    CancelTakesNoncesBack,
    CloseAnswersTheWaiting,
    CloseDoesNotWaitForTmux,
    FailedStartsAreBounded,
    GiveUpInTheEnd,
    LedgerBeforeLaunch,
    MarkersCountForTheirCommand,
    OneCommandAtATime,
    PromptProgramsMayEnd,
    RecheckAfterGap,
    RecheckAfterInterrupt,
    RecordersAreAwaited,
    RenewTheEndNonce,
    ReportThePredecessor,
    ResendOnlyWhatWasReadBack,
    SlowStartsAreKilled,
}
