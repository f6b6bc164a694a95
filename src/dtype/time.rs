//! What counts of time mean: points or lengths, and their units.

/// Units of time from the longest to the shortest, behind the generic one: NumPy's names, and the
/// words that its scalars are printed with.
const UNITS: [(&str, &str); 14] = [
    ("", "generic time units"),
    ("Y", "years"),
    ("M", "months"),
    ("W", "weeks"),
    ("D", "days"),
    ("h", "hours"),
    ("m", "minutes"),
    ("s", "seconds"),
    ("ms", "milliseconds"),
    ("us", "microseconds"),
    ("ns", "nanoseconds"),
    ("ps", "picoseconds"),
    ("fs", "femtoseconds"),
    ("as", "attoseconds"),
];

/// What a count of units of time is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeKind {
    /// `M8`: a point in time, counted from 1970 on.
    Datetime,
    /// `m8`: a length of time.
    Timedelta,
}

/// A unit of time: `[25s]` is 25 of `s`. It takes few bytes, since an output keeps a conversion for
/// each of its tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeUnit {
    /// How many of the named units one step is.
    pub count: i32,
    /// The place of its name among [`UNITS`].
    number: u8,
}

impl TimeUnit {
    /// The unit of which nothing is known.
    pub(crate) const GENERIC: TimeUnit = TimeUnit { count: 1, number: 0 };

    /// So many of the unit that NumPy calls so, `Y` to `as`, or nothing for the generic one.
    pub fn new(count: i32, name: &str) -> Option<TimeUnit> {
        let number = UNITS.iter().position(|(known, _)| *known == name)?;
        Some(TimeUnit { count, number: number as u8 })
    }

    /// NumPy's name of the unit; empty for the generic one.
    pub fn name(self) -> &'static str {
        UNITS[usize::from(self.number)].0
    }

    /// The name of several of them.
    pub(crate) fn plural(self) -> &'static str {
        UNITS[usize::from(self.number)].1
    }

    /// Its place among all from years on, the longest; the generic one has none.
    pub(crate) fn rank(self) -> Option<usize> {
        usize::from(self.number).checked_sub(1)
    }
}
