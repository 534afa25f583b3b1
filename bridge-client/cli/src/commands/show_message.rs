//! `show-message TEXT`: shows a message, and prints the button that was pressed, if there are buttons.

use bridge_protocol::methods::{MessageLevel, ShowMessage as ShowMessageMethod, ShowMessageParams};

use super::{Context, typed};
use crate::cli::{Level, ShowMessage};
use crate::failure::Failure;
use crate::output::Style;

pub async fn run(mut context: Context, arguments: ShowMessage) -> Result<(), Failure> {
    let level = match arguments.level {
        Level::Info => MessageLevel::Info,
        Level::Warning => MessageLevel::Warning,
        Level::Error => MessageLevel::Error,
    };
    let params = ShowMessageParams {
        message: arguments.text,
        level,
        buttons: arguments.buttons,
        timeout: None,
    };
    let result = context.call::<ShowMessageMethod>(&params).await?;
    if context.output.style == Style::Json {
        return context.output.json(&result).await;
    }
    match typed::<ShowMessageMethod>(&result)?.choice {
        Some(choice) => context.output.line(&choice).await,
        None => Ok(()),
    }
}
