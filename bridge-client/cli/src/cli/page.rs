//! The command line of `bridge-client page`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::seconds;
use super::target::Target;

pub const PAGE_HELP: &str = "\
Examples:
  bridge-client page browse http://127.0.0.1:8000/
  bridge-client page browse docs/index.html --picture page.png";

/// `page VERB`
#[derive(Args, Debug)]
pub struct Page {
    #[command(flatten)]
    pub target: Target,
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Print the text and the links of a web page
    Browse(Browse),
}

/// `page browse URL`
#[derive(Args, Debug)]
pub struct Browse {
    /// The address of the page (http: or https:), or the path of an HTML file of the workspace
    pub url: String,
    /// Give up after this time [default: 30]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub limit: Option<Duration>,
    /// Write a picture of the page to this file, as PNG; the runtime needs a browser for this
    #[arg(long, value_name = "FILE")]
    pub picture: Option<PathBuf>,
}
