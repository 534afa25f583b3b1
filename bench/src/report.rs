//! Collects figures, compares them with targets, and shows them as a table, a JSON file and a chart.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

/// All figures and notes of a run.
#[derive(Default, Serialize)]
pub struct Report {
    groups: Vec<Group>,
    notes: Vec<String>,
    /// Number of groups that have been printed.
    #[serde(skip)]
    printed: usize,
}

#[derive(Serialize)]
struct Group {
    title: String,
    figures: Vec<Figure>,
}

/// One line of the table.
#[derive(Serialize)]
pub struct Figure {
    name: String,
    value: Spread,
    ratio: Option<Spread>,
    target: Option<Target>,
}

/// Median, smallest and largest value over the rounds.
#[derive(Clone, Copy, Serialize)]
pub struct Spread {
    median: f64,
    least: f64,
    most: f64,
}

/// The value that a figure should reach. It applies to the ratio if there is one, else to the value.
#[derive(Clone, Copy, Serialize)]
pub struct Target {
    must: f64,
    goal: f64,
    less_is_better: bool,
}

impl Target {
    pub fn at_most(must: f64, goal: f64) -> Self {
        Self { must, goal, less_is_better: true }
    }

    pub fn at_least(must: f64, goal: f64) -> Self {
        Self { must, goal, less_is_better: false }
    }

    fn verdict(self, figure: f64) -> &'static str {
        let reaches = |bar: f64| if self.less_is_better { figure <= bar } else { figure >= bar };
        match (reaches(self.goal), reaches(self.must)) {
            (true, _) => "goal",
            (false, true) => "ok",
            (false, false) => "MISSED",
        }
    }
}

impl Spread {
    fn of(figures: &[f64]) -> Self {
        let mut sorted = figures.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
        Self { median: at(sorted.len() / 2), least: at(0), most: at(sorted.len().max(1) - 1) }
    }
}

/// The median of some times, in seconds.
pub fn median_of(times: Vec<Duration>) -> f64 {
    Spread::of(&times.iter().map(Duration::as_secs_f64).collect::<Vec<_>>()).median
}

impl Figure {
    pub fn new(name: &str, values: Option<&Vec<f64>>) -> Self {
        let value = Spread::of(values.map_or(&[], Vec::as_slice));
        Self { name: name.to_owned(), value, ratio: None, target: None }
    }

    /// Adds ratios and their target. Without the peer there are no ratios, and the target is dropped.
    pub fn with_ratios(self, ratios: Option<Vec<f64>>, target: Option<Target>) -> Self {
        let target = target.filter(|_| ratios.is_some());
        Self { ratio: ratios.map(|ratios| Spread::of(&ratios)), target, ..self }
    }

    pub fn with_target(self, target: Target) -> Self {
        Self { target: Some(target), ..self }
    }

    /// The values to which the target applies.
    fn judged(&self) -> Spread {
        self.ratio.unwrap_or(self.value)
    }
}

impl Report {
    pub fn add(&mut self, group: &str, figure: Figure) {
        match self.groups.iter_mut().find(|known| known.title == group) {
            Some(known) => known.figures.push(figure),
            None => self.groups.push(Group { title: group.to_owned(), figures: vec![figure] }),
        }
    }

    /// Prints a note at once, and keeps it for the JSON file.
    #[allow(clippy::print_stdout, reason = "part of the table")]
    pub fn note(&mut self, note: String) {
        println!("\nNote: {note}");
        self.notes.push(note);
    }

    /// Prints the groups that were added since the last call.
    #[allow(clippy::print_stdout, reason = "the table is the output of this program")]
    pub fn print_new(&mut self) {
        for group in &self.groups[self.printed..] {
            println!("\n{}", group.title);
            for figure in &group.figures {
                let ratio = figure.ratio.map(|Spread { median, least, most }| {
                    format!("× {} [{}…{}]", short(median), short(least), short(most))
                });
                let verdict = figure.target.map(|target| {
                    let sign = if target.less_is_better { "≤" } else { "≥" };
                    let verdict = target.verdict(figure.judged().median);
                    format!("{sign} {}, goal {}: {verdict}", target.must, target.goal)
                });
                let line = format!(
                    "  {:<48} {:>9}  {:<28} {}",
                    figure.name,
                    short(figure.value.median),
                    ratio.unwrap_or_default(),
                    verdict.unwrap_or_default()
                );
                println!("{}", line.trim_end());
            }
        }
        self.printed = self.groups.len();
    }

    /// Writes `figures.json` and `chart.svg`.
    pub fn write(&self, directory: &Path) -> Result<()> {
        std::fs::create_dir_all(directory)?;
        std::fs::write(directory.join("figures.json"), serde_json::to_string_pretty(self)? + "\n")?;
        if let Some(group) = self.groups.iter().find(|group| group.title.starts_with(CHARTED)) {
            std::fs::write(directory.join("chart.svg"), chart(group))?;
        }
        eprintln!("\nwritten: {}", directory.display());
        Ok(())
    }
}

/// The group in the chart: the most telling one for a newcomer.
const CHARTED: &str = "64 in flight, 200 B: requests/s, and × one-hop echo";

/// Draws bars on a logarithmic scale, because the peers differ by orders of magnitude.
fn chart(group: &Group) -> String {
    const ROW: usize = 26;
    const LEFT: usize = 290;
    const WIDTH: usize = 420;
    let largest = group.figures.iter().map(|figure| figure.value.median).fold(1.0, f64::max);
    let height = ROW * group.figures.len() + 44;
    let total = LEFT + WIDTH + 100;
    let title = "Requests per second, 200 bytes, 64 in flight, one client (logarithmic)";
    let mut svg = svg_page(total as f64, height as f64, title);
    for (index, figure) in group.figures.iter().enumerate() {
        let top = 36 + index * ROW;
        let share = figure.value.median.max(1.0).log10() / largest.log10();
        let width = (share * WIDTH as f64).round();
        let colour = if figure.name.starts_with("Run Bridge") { "#0b6" } else { "#9ab" };
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\
             <rect x=\"{LEFT}\" y=\"{top}\" width=\"{width}\" height=\"18\" fill=\"{colour}\"/>\
             <text x=\"{}\" y=\"{}\">{}</text>",
            LEFT - 10,
            top + 14,
            figure.name,
            LEFT as f64 + width + 8.0,
            top + 14,
            short(figure.value.median)
        );
    }
    svg + "</svg>\n"
}

/// The beginning of an SVG file with a title.
pub fn svg_page(width: f64, height: f64, title: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n\
         <text x=\"12\" y=\"22\" font-weight=\"bold\">{title}</text>\n"
    )
}

/// Prints about three digits: the measurement is no more precise.
fn short(figure: f64) -> String {
    match figure.abs() {
        size if size >= 10_000.0 => format!("{:.0} k", figure / 1000.0),
        size if size >= 100.0 => format!("{figure:.0}"),
        size if size >= 10.0 => format!("{figure:.1}"),
        _ => format!("{figure:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_judged_by_the_median_of_the_ratios() {
        let figure = Figure::new("broker", Some(&vec![900.0]));
        let figure = figure.with_ratios(Some(vec![9.0, 1.0, 3.0]), Some(Target::at_most(4.0, 2.5)));
        assert_eq!(figure.target.unwrap().verdict(figure.judged().median), "ok");
        assert_eq!(Target::at_most(4.0, 2.5).verdict(2.5), "goal");
        assert_eq!(Target::at_most(4.0, 2.5).verdict(4.1), "MISSED");
        assert_eq!(Target::at_least(0.4, 0.6).verdict(0.5), "ok");
        assert_eq!(Target::at_least(0.4, 0.6).verdict(0.3), "MISSED");
    }

    #[test]
    fn a_figure_without_its_peer_is_not_judged() {
        let figure = Figure::new("broker", Some(&vec![900.0]));
        let figure = figure.with_ratios(None, Some(Target::at_least(10.0, 25.0)));
        assert!(figure.target.is_none(), "requests per second are not a ratio");
    }

    #[test]
    fn a_figure_without_values_misses_its_target() {
        let nothing = Figure::new("nothing", None);
        assert_eq!(Target::at_most(4.0, 2.5).verdict(nothing.judged().median), "MISSED");
    }
}
