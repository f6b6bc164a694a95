//! Axes as users name them: by number, or by the name of a dimension.

use std::fmt;

/// An axis as the user gives it; a negative number counts from the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskedAxis {
    Number(i64),
    Name(String),
}

impl Default for AskedAxis {
    fn default() -> AskedAxis {
        AskedAxis::Number(0)
    }
}

impl From<i64> for AskedAxis {
    fn from(number: i64) -> AskedAxis {
        AskedAxis::Number(number)
    }
}

impl AskedAxis {
    /// Parse the text of an axis; `None` where it is neither an integer nor begins like a name.
    pub fn parse(text: &str) -> Option<AskedAxis> {
        let text = text.trim();
        let is_name = text.starts_with(|first: char| first.is_alphabetic() || first == '_');
        match text.parse() {
            Ok(number) => Some(AskedAxis::Number(number)),
            Err(_) => is_name.then(|| AskedAxis::Name(text.to_owned())),
        }
    }

    /// The number of the axis; `names` gives the names of all axes.
    pub fn number(&self, names: impl FnOnce() -> Vec<Option<String>>) -> Result<i64, NoDimension> {
        match self {
            AskedAxis::Number(number) => Ok(*number),
            AskedAxis::Name(name) => Ok(dimension(name, &names())? as i64),
        }
    }
}

pub fn dimension(name: &str, names: &[Option<String>]) -> Result<usize, NoDimension> {
    let found = names.iter().position(|it| it.as_deref() == Some(name));
    found.ok_or_else(|| NoDimension {
        name: name.to_owned(),
        names: names.iter().flatten().cloned().collect(),
    })
}

/// The error for a name that no axis has; it lists the names that exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoDimension {
    pub name: String,
    pub names: Vec<String>,
}

impl fmt::Display for NoDimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no dimension is named {:?}", self.name)?;
        match self.names.as_slice() {
            [] => f.write_str(": the axes have no names"),
            names => write!(f, ": there are {}", names.join(", ")),
        }
    }
}

impl std::error::Error for NoDimension {}
