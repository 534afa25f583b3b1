//! One thing that happens in the simulated world.

#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    /// A caller runs a text of some kind.
    Run(u8),
    /// The latest caller that wants to run something goes away.
    GoAway,
    /// A caller presses Ctrl-C.
    Interrupt,
    Close,
    Export,
    Resize,
    /// A waiting caller looks at a quiet command.
    LookAtQuiet,
    /// Somebody starts a program by hand, or it ends.
    ByHand,
    /// A person presses Ctrl-C at the terminal, of which the owner hears nothing.
    InterruptByHand,
    /// Everything goes on for so many rounds, as it does when nothing disturbs it.
    GoOn(u8),
    /// tmux does what it was asked first.
    Tmux,
    /// The shell goes on.
    Shell,
    /// Something printed reaches the recorder.
    Deliver,
    /// The recorder works on what it has.
    Record,
    /// The owner reads the index.
    Read,
    /// The owner hears an answer, of the many that are on their way.
    Answer(u8),
    /// The owner hears of the end of a process.
    Notice,
    /// Milliseconds pass.
    Pass(u16),
    LoseMarker,
    DoubleMarker,
    DoubleLine,
    SwapMarkers,
    KillRecorder,
    KillShell,
    KillTmux,
    StopTmux,
    ContinueTmux,
    /// The owner is killed; requests that are still in its memory go with it.
    KillOwner(u8),
    Adopt,
    /// The lease of a killed owner runs out, and the keeper's sweep ends everything.
    Sweep,
    FillDisk,
    FreeDisk,
    /// The next shells die in their start-up files, so many of them.
    BreakStartUp(u8),
}

/// Steps, and how often each comes compared with the others.
const WEIGHTS: [(Step, u16); 33] = [
    (Step::Run(0), 12),
    (Step::GoAway, 2),
    (Step::Interrupt, 4),
    (Step::Close, 1),
    (Step::Export, 1),
    (Step::Resize, 1),
    (Step::LookAtQuiet, 3),
    (Step::ByHand, 1),
    (Step::InterruptByHand, 2),
    (Step::GoOn(0), 30),
    (Step::Tmux, 14),
    (Step::Shell, 18),
    (Step::Deliver, 16),
    (Step::Record, 16),
    (Step::Read, 16),
    (Step::Answer(0), 14),
    (Step::Notice, 8),
    (Step::Pass(0), 6),
    (Step::LoseMarker, 2),
    (Step::DoubleMarker, 1),
    (Step::DoubleLine, 1),
    (Step::SwapMarkers, 1),
    (Step::KillRecorder, 3),
    (Step::KillShell, 2),
    (Step::KillTmux, 1),
    (Step::StopTmux, 1),
    (Step::ContinueTmux, 1),
    (Step::KillOwner(0), 3),
    (Step::Adopt, 6),
    (Step::Sweep, 1),
    (Step::FillDisk, 1),
    (Step::FreeDisk, 2),
    (Step::BreakStartUp(0), 1),
];

impl Step {
    /// Whether something may be lost by it of which only a caller that waits can know.
    pub(super) fn loses_unseen(self) -> bool {
        const TURNS_EDITING_OFF: u8 = 1;
        matches!(
            self,
            Self::InterruptByHand
                | Self::LoseMarker
                | Self::SwapMarkers
                | Self::Run(TURNS_EDITING_OFF)
        )
    }

    /// The step that two numbers stand for: which it is, and its detail.
    pub(super) fn of(which: u16, detail: u8) -> Self {
        let mut rest = which % WEIGHTS.iter().map(|(_, weight)| weight).sum::<u16>();
        for (step, weight) in WEIGHTS {
            if rest >= weight {
                rest -= weight;
                continue;
            }
            return match step {
                Self::Run(_) => Self::Run(detail % 12),
                Self::GoOn(_) => Self::GoOn(1 + detail % 16),
                Self::Answer(_) => Self::Answer(detail),
                Self::Pass(_) => Self::Pass(1 + 20 * u16::from(detail)),
                Self::KillOwner(_) => Self::KillOwner(detail),
                Self::BreakStartUp(_) => Self::BreakStartUp(1 + detail % 5),
                step => step,
            };
        }
        unreachable!("the rest is less than the sum of the weights")
    }
}
