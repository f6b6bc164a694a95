//! What a comparison found.

/// What portions of elements add up to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// How many elements differ.
    pub differing: u64,
    /// The first of them.
    pub first: Option<Largest>,
    /// How many of them hold NaN, NaT or an infinity, in one of both files at least.
    pub not_finite: u64,
    /// The first of these.
    pub first_not_finite: Option<Largest>,
    /// The one of the largest absolute difference, among finite numbers.
    pub absolute: Option<Largest>,
    /// The one of the largest difference relative to the second value, among finite numbers.
    pub relative: Option<Largest>,
}

/// A difference and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Largest {
    /// The difference.
    pub difference: f64,
    /// The number of the element.
    pub place: u64,
    /// The bytes of both elements.
    pub values: (Vec<u8>, Vec<u8>),
}

/// Two elements that differ.
pub struct Pair<'a> {
    pub(super) a: &'a [u8],
    pub(super) b: &'a [u8],
    /// Whether a part that differs is NaN, NaT or an infinity.
    pub(super) not_finite: bool,
    /// The absolute and the relative difference of finite numbers.
    pub(super) distance: Option<(f64, f64)>,
}

impl Findings {
    /// Add a large element that differs, of which the bytes are not kept.
    pub fn add_large(&mut self, place: u64) {
        self.add(place, Pair { a: &[], b: &[], not_finite: false, distance: None });
    }

    /// Add two elements that differ.
    pub(super) fn add(&mut self, place: u64, pair: Pair<'_>) {
        self.differing += 1;
        let found =
            |difference| Largest { difference, place, values: (pair.a.to_vec(), pair.b.to_vec()) };
        if Largest::is_later(&self.first, place) {
            self.first = Some(found(0.0));
        }
        if pair.not_finite {
            self.not_finite += 1;
            if Largest::is_later(&self.first_not_finite, place) {
                self.first_not_finite = Some(found(0.0));
            }
        }
        let Some((absolute, relative)) = pair.distance else { return };
        if Largest::is_exceeded(&self.absolute, absolute, place) {
            self.absolute = Some(found(absolute));
        }
        if !relative.is_nan() && Largest::is_exceeded(&self.relative, relative, place) {
            self.relative = Some(found(relative));
        }
    }

    /// Add what another portion found.
    pub fn merge(&mut self, other: Findings) {
        self.differing += other.differing;
        self.not_finite += other.not_finite;
        Largest::keep_first(&mut self.first, other.first);
        Largest::keep_first(&mut self.first_not_finite, other.first_not_finite);
        Largest::merge(&mut self.absolute, other.absolute);
        Largest::merge(&mut self.relative, other.relative);
    }
}

impl Largest {
    /// Whether what was found stands behind this place, or nothing was found.
    fn is_later(found: &Option<Largest>, place: u64) -> bool {
        found.as_ref().is_none_or(|found| place < found.place)
    }

    fn keep_first(ours: &mut Option<Largest>, theirs: Option<Largest>) {
        if let Some(theirs) = theirs
            && Largest::is_later(ours, theirs.place)
        {
            *ours = Some(theirs);
        }
    }

    /// Whether a difference is larger, or as large at an earlier place.
    fn is_exceeded(largest: &Option<Largest>, difference: f64, place: u64) -> bool {
        largest.as_ref().is_none_or(|largest| {
            difference > largest.difference
                || difference == largest.difference && place < largest.place
        })
    }

    fn merge(ours: &mut Option<Largest>, theirs: Option<Largest>) {
        if let Some(theirs) = theirs
            && Largest::is_exceeded(ours, theirs.difference, theirs.place)
        {
            *ours = Some(theirs);
        }
    }
}
