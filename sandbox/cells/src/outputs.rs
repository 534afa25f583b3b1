//! The outputs of a cell: of very many, the beginning and the end are kept.

use std::collections::VecDeque;

use tokio::sync::mpsc;

use super::cell::CellOutput;

/// Bytes that are kept of the beginning, and of the end. Together they fit into an answer of the daemon, with
/// room for the cell itself.
const HEAD: usize = 10 << 20;
const TAIL: usize = 2 << 20;

#[derive(Debug)]
pub(super) struct Outputs {
    /// Is told the beginning as it comes, and the end when that is known.
    subscriber: Option<mpsc::UnboundedSender<CellOutput>>,
    head: Vec<CellOutput>,
    head_size: usize,
    /// Bytes that were left out between the two.
    gap: u64,
    /// What came when the head was full, with its sizes.
    tail: VecDeque<(CellOutput, usize)>,
    tail_size: usize,
}

impl Outputs {
    pub(super) fn new(subscriber: Option<mpsc::UnboundedSender<CellOutput>>) -> Self {
        let (head, tail) = (Vec::new(), VecDeque::new());
        Self { subscriber, head, head_size: 0, gap: 0, tail, tail_size: 0 }
    }

    /// Takes the next output, which costs so much.
    pub(super) fn push(&mut self, output: CellOutput, size: usize) {
        let is_beginning = self.gap == 0 && self.tail.is_empty();
        if is_beginning && self.head_size + size <= HEAD {
            self.head_size += size;
            self.tell(&output);
            append(&mut self.head, output);
            return;
        }
        if size > TAIL {
            // It is too much by itself; nothing else shall go for it.
            return self.push(CellOutput::LeftOut { bytes: output.bytes() }, 0);
        }
        self.tail_size += size;
        self.tail.push_back((output, size));
        while self.tail_size > TAIL
            && let Some((output, size)) = self.tail.pop_front()
        {
            self.tail_size -= size;
            self.gap += output.bytes();
        }
    }

    /// All that were kept, in their order.
    pub(super) fn finish(mut self) -> Vec<CellOutput> {
        let gap = (self.gap > 0).then_some(CellOutput::LeftOut { bytes: self.gap });
        let tail = std::mem::take(&mut self.tail).into_iter().map(|(output, _)| output);
        for output in gap.into_iter().chain(tail) {
            self.tell(&output);
            append(&mut self.head, output);
        }
        self.head
    }

    fn tell(&self, output: &CellOutput) {
        if let Some(subscriber) = &self.subscriber {
            let _ = subscriber.send(output.clone());
        }
    }
}

/// What is printed in small pieces is still one text.
fn append(outputs: &mut Vec<CellOutput>, output: CellOutput) {
    use CellOutput::{LeftOut, Stream};
    match (outputs.last_mut(), output) {
        (Some(Stream { name, text }), Stream { name: new_name, text: new_text })
            if *name == new_name =>
        {
            text.push_str(&new_text);
        }
        (Some(LeftOut { bytes }), LeftOut { bytes: more }) => *bytes += more,
        (_, output) => outputs.push(output),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: impl Into<String>) -> CellOutput {
        CellOutput::Stream { name: "stdout".into(), text: text.into() }
    }

    /// What comes of outputs, and what a subscriber was told by then.
    fn keep(outputs: impl IntoIterator<Item = CellOutput>) -> (Vec<CellOutput>, Vec<CellOutput>) {
        let (subscriber, mut told) = mpsc::unbounded_channel();
        let mut kept = Outputs::new(Some(subscriber));
        for output in outputs {
            let size = usize::try_from(output.bytes()).unwrap();
            kept.push(output, size);
        }
        let kept = kept.finish();
        let told = std::iter::from_fn(|| told.try_recv().ok()).fold(Vec::new(), |mut all, next| {
            append(&mut all, next);
            all
        });
        (kept, told)
    }

    #[test]
    fn little_is_kept_as_it_came() {
        let (kept, told) = keep(["a", "b"].map(printed));
        assert_eq!(kept, [printed("ab")]);
        assert_eq!(told, kept);
    }

    #[test]
    fn of_much_both_ends_are_kept_and_what_is_missing_is_counted() {
        let lines = (0..300_000).map(|number| printed(format!("{number:0>63}\n")));
        let error = CellOutput::Error {
            ename: "E".into(),
            evalue: String::new(),
            traceback: vec!["E: at the end".into()],
        };
        let (kept, told) = keep(lines.chain([error.clone()]));
        let [CellOutput::Stream { text: head, .. }, CellOutput::LeftOut { bytes }, tail, last] =
            &*kept
        else {
            panic!("{} outputs", kept.len());
        };
        assert_eq!(last, &error);
        assert_eq!(head.len() as u64 + bytes + tail.bytes(), 300_000 * 64);
        assert!(head.starts_with(&format!("{:0>63}\n", 0)) && head.len() == HEAD);
        assert!(tail.text().ends_with("299999\n") && tail.bytes() <= TAIL as u64);
        assert_eq!(told, kept);
    }

    #[test]
    fn what_is_too_much_by_itself_takes_nothing_else_away() {
        let (kept, told) = keep([printed("a"), printed("x".repeat(HEAD)), printed("b")]);
        assert_eq!(kept, [printed("a"), CellOutput::LeftOut { bytes: HEAD as u64 }, printed("b")]);
        assert_eq!(told, kept);
    }
}
