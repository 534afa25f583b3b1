//! The steps of the simulated world.

#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    /// A caller runs a text of some kind.
    Run(u8),
    /// The latest caller of a run request goes away.
    GoAway,
    /// A caller presses Ctrl-C.
    Interrupt,
    Close,
    Export,
    Resize,
    /// A waiting caller reports that the shell looks idle.
    LookAtQuiet,
    /// A person starts a program by hand, or that program ends.
    ByHand,
    /// A person presses Ctrl-C at the terminal, which the owner does not notice.
    InterruptByHand,
    /// Everything runs for this many rounds without disturbance.
    GoOn(u8),
    /// tmux carries out its oldest command.
    Tmux,
    /// The shell makes one step.
    Shell,
    /// A piece of output reaches the recorder.
    Deliver,
    /// The recorder processes a piece of output.
    Record,
    /// The owner reads the index.
    Read,
    /// The owner receives one of the answers that are on their way.
    Answer(u8),
    /// The owner notices the end of a process.
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
    /// The owner is killed; commands to tmux that are still in its memory are lost.
    KillOwner(u8),
    Adopt,
    /// The lease of a killed owner ends, and the keeper's sweep ends everything.
    Sweep,
    FillDisk,
    FreeDisk,
    /// This many of the next shells die in their start-up files.
    BreakStartUp(u8),
}

/// The steps with their relative frequencies.
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
    /// Whether this step may cause a loss that only a waiting caller can notice.
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

    /// Decodes a step from two numbers: its kind and its detail.
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
