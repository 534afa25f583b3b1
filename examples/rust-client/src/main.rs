//! Asks a question from Rust and prints the answer as it arrives.
//!
//! Run it from the repository:
//!
//! ```console
//! $ cargo build --workspace
//! $ target/debug/bridge-daemon run --chat-command ./examples/calculator.sh -- target/debug/rust-client-example
//! ```

#![allow(clippy::print_stdout)] // An example prints.

use std::io::Write;
use std::time::Duration;

use bridge_client::{Client, Endpoint, Error, Options};
use bridge_protocol::methods::{Chat, ChatParams, TextProgress};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let endpoint = Endpoint::find(None, |name| std::env::var(name).ok())?;
    let client = Client::connect(endpoint, Options::default()).await?;
    let question = ChatParams { message: "What is 2+2?".to_owned(), ..ChatParams::default() };
    let mut call = client.call::<Chat>(&question, Some(Duration::from_secs(30)));
    while let Some(piece) = call.progress().await {
        if let Ok(piece) = serde_json::from_str::<TextProgress>(piece.get()) {
            print!("{}", piece.text);
            // A failure shows in the next print.
            let _ = std::io::stdout().flush();
        }
    }
    let answer = call.await?;
    match answer.blocked_reason {
        Some(reason) => println!("no model answered: {reason}"),
        None => println!("\n(conversation {})", answer.conversation_id.unwrap_or_default()),
    }
    Ok(())
}
