//! The rights of a client token.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One kind of thing that a client may do. Each tool needs one or more rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// Talk to the person and to the language model: `vscode/chat`, `vscode/showMessage`.
    Chat,
    /// Read files, and the state and output of shells.
    Read,
    /// Change files.
    Write,
    /// Run commands and cells, and open web pages.
    Run,
    /// Use the editor: its commands, its language services, its debugger.
    Editor,
}

impl Right {
    /// All rights.
    pub const ALL: [Self; 5] = [Self::Chat, Self::Read, Self::Write, Self::Run, Self::Editor];

    /// Name of the right on the wire and in `--rights`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Read => "read",
            Self::Write => "write",
            Self::Run => "run",
            Self::Editor => "editor",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A set of rights. On the wire it is a sorted list of names; in flags the names are separated by commas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rights(u8);

impl Rights {
    /// No rights, which is enough for the daemon's own methods.
    pub const NONE: Self = Self(0);
    /// All rights. Only these allow methods that the catalogue does not list.
    pub const ALL: Self = Self::of(&Right::ALL);

    /// The set of these rights.
    pub const fn of(rights: &[Right]) -> Self {
        let (mut bits, mut at) = (0, 0);
        while at < rights.len() {
            bits |= rights[at].bit();
            at += 1;
        }
        Self(bits)
    }

    /// Whether this set has all rights of `other`.
    pub const fn include(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The rights of `other` that this set does not have.
    pub const fn missing(self, other: Self) -> Self {
        Self(other.0 & !self.0)
    }

    /// The rights of this set, sorted.
    pub fn iter(self) -> impl Iterator<Item = Right> {
        Right::ALL.into_iter().filter(move |right| self.0 & right.bit() != 0)
    }
}

impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, right) in self.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { "," })?;
            f.write_str(right.name())?;
        }
        Ok(())
    }
}

/// A word that is not the name of a right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no right {word:?}: use chat, read, write, run or editor, separated by commas")]
pub struct UnknownRight {
    /// The word.
    pub word: String,
}

impl FromStr for Right {
    type Err = UnknownRight;

    fn from_str(word: &str) -> Result<Self, UnknownRight> {
        let found = Self::ALL.into_iter().find(|right| right.name() == word);
        found.ok_or_else(|| UnknownRight { word: word.to_owned() })
    }
}

impl FromStr for Rights {
    type Err = UnknownRight;

    fn from_str(text: &str) -> Result<Self, UnknownRight> {
        let rights =
            text.split(',').map(|word| word.trim().parse()).collect::<Result<Vec<_>, _>>()?;
        Ok(Self::of(&rights))
    }
}

impl Serialize for Rights {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(Right::name))
    }
}

impl<'de> Deserialize<'de> for Rights {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let words = Vec::<String>::deserialize(deserializer)?;
        let rights = words.iter().map(|word| word.parse()).collect::<Result<Vec<Right>, _>>();
        rights.map(|rights| Self::of(&rights)).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_parsed_and_printed_by_name() {
        let rights: Rights = "run, read".parse().unwrap();
        assert_eq!(rights.to_string(), "read,run");
        assert_eq!(serde_json::to_string(&rights).unwrap(), r#"["read","run"]"#);
        assert_eq!(serde_json::from_str::<Rights>(r#"["run","read"]"#).unwrap(), rights);
        let error = "read,fly".parse::<Rights>().unwrap_err();
        assert_eq!(error.word, "fly");
        assert!("".parse::<Rights>().is_err());
    }

    #[test]
    fn a_set_includes_its_subsets_only() {
        let rights = Rights::of(&[Right::Read, Right::Run]);
        assert!(rights.include(Rights::of(&[Right::Run])));
        assert!(rights.include(Rights::NONE));
        assert!(!rights.include(Rights::of(&[Right::Run, Right::Write])));
        assert_eq!(rights.missing(Rights::ALL).to_string(), "chat,write,editor");
        for right in Right::ALL {
            assert!(Rights::ALL.include(Rights::of(&[right])), "{right:?}");
        }
    }
}
