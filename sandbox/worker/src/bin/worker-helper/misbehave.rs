//! A job that does what hostile input can make a parser do. The tests and the program
//! `worker-helper` share it.

use std::hint::black_box;
use std::process::Command;
use std::{env, fs};

use sandbox_worker::Job;
use serde::{Deserialize, Serialize};

#[derive(Debug)]
pub(crate) struct Misbehave;

/// The ways in which the helper misbehaves on request.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Deed {
    /// Returns the text.
    Echo(String),
    /// Never ends.
    Loop,
    /// Calls itself until the stack overflows.
    Recurse,
    /// Allocates without end.
    Allocate,
    /// Panics.
    Panic,
    /// Returns this many bytes.
    Return(usize),
    /// Prints this many bytes to standard error.
    Print(usize),
    /// Starts a process, writes its id and its own to the file, and never ends.
    Start(String),
    /// Returns the name of the current directory.
    Directory,
}

impl Job for Misbehave {
    type Request = Deed;
    type Answer = String;

    const NAME: &'static str = "misbehave";
    const MEMORY: Option<u64> = Some(256 << 20);
    const ANSWER_BYTES: u64 = 1 << 20;

    fn carry_out(deed: Deed) -> String {
        match deed {
            Deed::Echo(text) => text,
            Deed::Loop => run_for_ever(),
            Deed::Recurse => recurse(0).to_string(),
            Deed::Allocate => {
                let mut blocks = Vec::new();
                loop {
                    blocks.push(black_box(vec![1_u8; 1 << 20]));
                }
            }
            Deed::Panic => panic!("as asked"),
            Deed::Return(bytes) => "x".repeat(bytes),
            Deed::Print(bytes) => {
                eprint!("{}", "x".repeat(bytes));
                String::new()
            }
            Deed::Start(file) => {
                #[expect(clippy::zombie_processes, reason = "this process is killed with it")]
                let child = Command::new("sleep").arg("1000").spawn().expect("sleep starts");
                fs::write(file, format!("{} {}\n", std::process::id(), child.id()))
                    .expect("the file can be written");
                run_for_ever()
            }
            Deed::Directory => env::current_dir().expect("there is one").display().to_string(),
        }
    }
}

fn run_for_ever() -> ! {
    loop {
        black_box(());
    }
}

#[expect(unconditional_recursion, reason = "the test wants the overflow")]
fn recurse(depth: u64) -> u64 {
    let room = black_box([depth; 100]);
    recurse(depth + 1) + room[usize::try_from(depth % 100).unwrap_or(0)]
}
