//! Draws figures over time as an SVG line chart.

use std::fmt::Write;

use crate::report::svg_page;

/// One line of the chart: a figure at regular times.
pub struct Line<'a> {
    pub name: &'a str,
    pub values: Vec<f64>,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 200.0;
const LEFT: f64 = 20.0;
const TOP: f64 = 40.0;
const ROW: f64 = 20.0;
const COLOURS: [&str; 6] = ["#0b6", "#06c", "#c60", "#909", "#888", "#c03"];

/// Draws the chart. Each line is scaled to its own largest value, which the legend shows.
pub fn plot(title: &str, lines: &[Line<'_>]) -> String {
    let height = TOP + HEIGHT + 20.0 + ROW * lines.len() as f64;
    let mut svg = svg_page(WIDTH + 2.0 * LEFT, height, title);
    let _ = writeln!(
        svg,
        "<rect x=\"{LEFT}\" y=\"{TOP}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"none\" stroke=\"#ccc\"/>"
    );
    for (index, line) in lines.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let most = line.values.iter().copied().fold(1.0, f64::max);
        let step = WIDTH / (line.values.len().max(2) - 1) as f64;
        let points: Vec<_> = line
            .values
            .iter()
            .enumerate()
            .map(|(at, value)| {
                let (x, y) = (LEFT + step * at as f64, TOP + HEIGHT * (1.0 - value / most));
                format!("{x:.1},{y:.1}")
            })
            .collect();
        let y = TOP + HEIGHT + 20.0 + ROW * index as f64;
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\"/>\
             <rect x=\"{LEFT}\" y=\"{:.0}\" width=\"12\" height=\"12\" fill=\"{colour}\"/>\
             <text x=\"{:.0}\" y=\"{y:.0}\">{}: at most {most:.0}</text>",
            points.join(" "),
            y - 11.0,
            LEFT + 20.0,
            line.name
        );
    }
    svg + "</svg>\n"
}
