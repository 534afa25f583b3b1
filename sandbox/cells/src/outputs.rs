//! The outputs of a cell. If they are too large, the beginning and the end are kept.

use std::collections::VecDeque;

use tokio::sync::mpsc;

use super::cell::CellOutput;

/// Bytes that are kept of the beginning and of the end. Together they fit into an answer of the
/// daemon, with room for the cell itself.
const HEAD: usize = 10 << 20;
const TAIL: usize = 2 << 20;

#[derive(Debug)]
pub(super) struct Outputs {
    /// Gets the beginning as it comes, and the end when the cell has ended.
    subscriber: Option<mpsc::UnboundedSender<CellOutput>>,
    head: Vec<CellOutput>,
    head_size: usize,
    /// Bytes that were omitted between head and tail.
    gap: u64,
    /// Outputs that came after the head was full, with their sizes.
    tail: VecDeque<(CellOutput, usize)>,
    tail_size: usize,
}

impl Outputs {
    pub(super) fn new(subscriber: Option<mpsc::UnboundedSender<CellOutput>>) -> Self {
        let (head, tail) = (Vec::new(), VecDeque::new());
        Self { subscriber, head, head_size: 0, gap: 0, tail, tail_size: 0 }
    }

    /// Adds an output that counts `size` bytes.
    pub(super) fn push(&mut self, output: CellOutput, size: usize) {
        let is_beginning = self.gap == 0 && self.tail.is_empty();
        if is_beginning && self.head_size + size <= HEAD {
            self.head_size += size;
            self.publish(&output);
            append(&mut self.head, output);
            return;
        }
        if size > TAIL {
            // Larger than the tail by itself: omit it, and do not drop other outputs for it.
            return self.push(CellOutput::Omitted { bytes: output.bytes() }, 0);
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

    /// All outputs that were kept, in order.
    pub(super) fn finish(mut self) -> Vec<CellOutput> {
        let gap = (self.gap > 0).then_some(CellOutput::Omitted { bytes: self.gap });
        let tail = std::mem::take(&mut self.tail).into_iter().map(|(output, _)| output);
        for output in gap.into_iter().chain(tail) {
            self.publish(&output);
            append(&mut self.head, output);
        }
        self.head
    }

    fn publish(&self, output: &CellOutput) {
        if let Some(subscriber) = &self.subscriber {
            // A subscriber may stop listening; the result has all outputs anyway.
            let _ = subscriber.send(output.clone());
        }
    }
}

/// Appends an output. Consecutive pieces of one stream, and consecutive gaps, are joined.
fn append(outputs: &mut Vec<CellOutput>, output: CellOutput) {
    use CellOutput::{Omitted, Stream};
    match (outputs.last_mut(), output) {
        (Some(Stream { name, text }), Stream { name: new_name, text: new_text })
            if *name == new_name =>
        {
            text.push_str(&new_text);
        }
        (Some(Omitted { bytes }), Omitted { bytes: more }) => *bytes += more,
        (_, output) => outputs.push(output),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: impl Into<String>) -> CellOutput {
        CellOutput::Stream { name: "stdout".into(), text: text.into() }
    }

    /// The outputs that are kept, and those that a subscriber has received.
    fn keep(outputs: impl IntoIterator<Item = CellOutput>) -> (Vec<CellOutput>, Vec<CellOutput>) {
        let (subscriber, mut received) = mpsc::unbounded_channel();
        let mut kept = Outputs::new(Some(subscriber));
        for output in outputs {
            let size = usize::try_from(output.bytes()).unwrap();
            kept.push(output, size);
        }
        let kept = kept.finish();
        let received =
            std::iter::from_fn(|| received.try_recv().ok()).fold(Vec::new(), |mut all, next| {
                append(&mut all, next);
                all
            });
        (kept, received)
    }

    #[test]
    fn small_outputs_are_kept_as_they_came() {
        let (kept, received) = keep(["a", "b"].map(printed));
        assert_eq!(kept, [printed("ab")]);
        assert_eq!(received, kept);
    }

    #[test]
    fn of_large_outputs_both_ends_are_kept_and_the_gap_is_counted() {
        let lines = (0..300_000).map(|number| printed(format!("{number:0>63}\n")));
        let error = CellOutput::Error {
            ename: "E".into(),
            evalue: String::new(),
            traceback: vec!["E: at the end".into()],
        };
        let (kept, received) = keep(lines.chain([error.clone()]));
        let [CellOutput::Stream { text: head, .. }, CellOutput::Omitted { bytes }, tail, last] =
            &*kept
        else {
            panic!("{} outputs", kept.len());
        };
        assert_eq!(last, &error);
        assert_eq!(head.len() as u64 + bytes + tail.bytes(), 300_000 * 64);
        assert!(head.starts_with(&format!("{:0>63}\n", 0)) && head.len() == HEAD);
        assert!(tail.text().ends_with("299999\n") && tail.bytes() <= TAIL as u64);
        assert_eq!(received, kept);
    }

    #[test]
    fn an_oversized_output_displaces_no_other() {
        let (kept, received) = keep([printed("a"), printed("x".repeat(HEAD)), printed("b")]);
        assert_eq!(kept, [printed("a"), CellOutput::Omitted { bytes: HEAD as u64 }, printed("b")]);
        assert_eq!(received, kept);
    }
}
