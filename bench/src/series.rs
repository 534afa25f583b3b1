//! Collects the figures of each round.

use std::collections::BTreeMap;

/// Figures by measurement and arm, one for each round.
#[derive(Default)]
pub struct Series(BTreeMap<(String, &'static str), Vec<f64>>);

impl Series {
    pub fn add(&mut self, what: impl Into<String>, arm: &'static str, figure: f64) {
        self.0.entry((what.into(), arm)).or_default().push(figure);
    }

    pub fn get(&self, what: &str, arm: &'static str) -> Option<&Vec<f64>> {
        self.0.get(&(what.to_owned(), arm))
    }

    /// For each round, the figure of one arm divided by that of another.
    pub fn ratios(&self, what: &str, arm: &'static str, to: &'static str) -> Option<Vec<f64>> {
        let (ours, theirs) = (self.get(what, arm)?, self.get(what, to)?);
        Some(ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect())
    }
}
