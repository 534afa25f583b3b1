//! Figures as they come in, round by round.

use std::collections::BTreeMap;

/// Figures by what is measured and by arm, one for each round.
#[derive(Default)]
pub struct Series(BTreeMap<(String, &'static str), Vec<f64>>);

impl Series {
    pub fn add(&mut self, what: impl Into<String>, arm: &'static str, figure: f64) {
        self.0.entry((what.into(), arm)).or_default().push(figure);
    }

    pub fn get(&self, what: &str, arm: &'static str) -> Option<&Vec<f64>> {
        self.0.get(&(what.to_owned(), arm))
    }

    /// Round by round, one arm's figure by another's.
    pub fn ratios(&self, what: &str, arm: &'static str, to: &'static str) -> Option<Vec<f64>> {
        let (ours, theirs) = (self.get(what, arm)?, self.get(what, to)?);
        Some(ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect())
    }
}
