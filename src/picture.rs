//! Arrays as pictures: which element each pixel shows, in which colour.
//!
//! A [`Sheet`] lays out an array of two axes as one picture, and one of more axes as tiles beside
//! each other (a contact sheet); elements with three or four channels may be colours themselves. Rows of
//! pixels are made one by one from elements that the caller reads, so that no picture is held in
//! memory.
//!
//! ```
//! use tslice::picture::Sheet;
//! let sheet = Sheet::new(&[10, 30, 40], None, None)?;
//! assert_eq!((sheet.width(), sheet.height()), (4 * 40 + 3, 3 * 30 + 2));
//! # Ok::<(), tslice::picture::SheetFault>(())
//! ```

use std::ops::Range;

use colorous::Gradient;

/// Pixels between the tiles of a contact sheet.
const GAP: u64 = 1;

const MOST_PIXELS: u64 = 65_535;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SheetFault {
    /// The number of axes, which is less than two.
    #[error("a picture needs two axes, and the selection has {0}")]
    Axes(usize),
    #[error("a picture needs elements, and the selection has none")]
    Empty,
    #[error(
        "the picture would have {width} x {height} pixels, at most {MOST_PIXELS} a side are possible"
    )]
    TooLarge {
        /// The width in pixels.
        width: u64,
        height: u64,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Sheet {
    /// The rows and columns of a tile, in elements.
    rows: u64,
    columns: u64,
    /// Elements per pixel: 1, or the channels of a colour.
    channels: u64,
    /// The value of a full channel.
    most: f64,
    /// The number of tiles, and the number of tiles side by side.
    tiles: u64,
    across: u64,
    tile_width: u64,
    tile_height: u64,
}

impl Sheet {
    /// Lay out an array of this shape. Where elements may be colours, `most` is the value of a full channel, and a
    /// last axis of length 3 or 4 is a colour. A pixel shows one element, unless `width` asks for another width in
    /// pixels.
    pub fn new(shape: &[u64], most: Option<f64>, width: Option<u64>) -> Result<Sheet, SheetFault> {
        if shape.contains(&0) {
            return Err(SheetFault::Empty);
        }
        let (image, channels) = match shape {
            [image @ .., channels @ (3 | 4)] if most.is_some() && image.len() >= 2 => {
                (image, *channels)
            }
            image => (image, 1),
        };
        let [outer @ .., rows, columns] = image else {
            return Err(SheetFault::Axes(shape.len()));
        };
        let rows = *rows;
        let columns = *columns;
        let tiles: u64 = outer.iter().product();
        let across = (tiles as f64).sqrt().ceil() as u64;
        let gaps = GAP * (across - 1);
        let tile_width =
            width.map_or(columns, |width| (width.saturating_sub(gaps) / across).max(1));
        let scaled = (u128::from(rows) * u128::from(tile_width)).div_ceil(u128::from(columns));
        let tile_height = if tile_width == columns { rows } else { scaled as u64 };
        let most = most.unwrap_or(1.0);
        let sheet = Sheet { rows, columns, channels, most, tiles, across, tile_width, tile_height };
        let width = sheet.width();
        let height = sheet.height();
        if width > MOST_PIXELS || height > MOST_PIXELS {
            return Err(SheetFault::TooLarge { width, height });
        }
        Ok(sheet)
    }

    /// The width in pixels.
    pub fn width(&self) -> u64 {
        self.across.saturating_mul(self.tile_width.saturating_add(GAP)) - GAP
    }

    pub fn height(&self) -> u64 {
        let down = self.tiles.div_ceil(self.across);
        down.saturating_mul(self.tile_height.saturating_add(GAP)) - GAP
    }

    /// Whether elements are colours themselves, not numbers to be coloured.
    pub fn has_colours(&self) -> bool {
        self.channels > 1
    }

    /// Whether the value is a channel of a colour, and out of range.
    pub fn is_clipped(&self, value: f64) -> bool {
        self.has_colours() && (value < 0.0 || value > self.most)
    }

    /// Bytes per pixel: 3, or 4 with an alpha channel.
    pub fn pixel_bytes(&self) -> usize {
        if self.channels == 4 { 4 } else { 3 }
    }

    /// The byte of a channel; NaN is 0.
    fn channel(&self, value: f64) -> u8 {
        (value * (255.0 / self.most)).round() as u8
    }

    /// The elements in a row of a tile, as a range of element numbers.
    fn row(&self, tile: u64, row: u64) -> Range<u64> {
        let len = self.columns * self.channels;
        let first = (tile * self.rows + row) * len;
        first..first + len
    }

    /// Paint row `y` of the picture; `read` calls a function with each element of a range of element numbers.
    pub fn paint<E>(
        &self,
        y: u64,
        colours: &Colours,
        mut read: impl FnMut(Range<u64>, &mut dyn FnMut(f64)) -> Result<(), E>,
    ) -> Result<Vec<u8>, E> {
        let mut pixels = vec![0; self.width() as usize * self.pixel_bytes()];
        let down = y / (self.tile_height + GAP);
        let y = y % (self.tile_height + GAP);
        if y == self.tile_height {
            return Ok(pixels);
        }
        // a row of pixels shows one row of elements, or the mean of several
        let scaled =
            |y: u64| (u128::from(y) * u128::from(self.rows)) / u128::from(self.tile_height);
        let first = scaled(y) as u64;
        let rows = first..(scaled(y + 1) as u64).max(first + 1);
        let bins = self.columns.min(self.tile_width);
        let channels = self.channels as usize;
        for across in 0..self.across {
            let tile = down * self.across + across;
            if tile >= self.tiles {
                break;
            }
            let mut means = vec![Mean::default(); bins as usize * channels];
            for row in rows.clone() {
                let mut at = 0u64;
                read(self.row(tile, row), &mut |value| {
                    let column = at / self.channels;
                    let channel = at % self.channels;
                    let bin = (column * bins / self.columns) * self.channels + channel;
                    let is_channel = self.channels > 1;
                    means[bin as usize].add(if is_channel {
                        value.clamp(0.0, self.most)
                    } else {
                        value
                    });
                    at += 1;
                })?;
            }
            let start = (across * (self.tile_width + GAP)) as usize * self.pixel_bytes();
            let tile = pixels[start..].chunks_exact_mut(self.pixel_bytes());
            for (x, pixel) in (0..self.tile_width).zip(tile) {
                let bin = (x * bins / self.tile_width) as usize * channels;
                match &means[bin..bin + channels] {
                    [only] => pixel.copy_from_slice(&colours.of(only.value())),
                    several => pixel
                        .iter_mut()
                        .zip(several)
                        .for_each(|(byte, mean)| *byte = self.channel(mean.value())),
                }
            }
        }
        Ok(pixels)
    }
}

/// The mean of the elements that a pixel shows, without NaN.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: f64,
    count: u32,
}

impl Mean {
    fn add(&mut self, value: f64) {
        if !value.is_nan() {
            self.sum += value;
            self.count += 1;
        }
    }

    fn value(self) -> f64 {
        self.sum / f64::from(self.count)
    }
}

/// A colour map over a range of numbers.
#[derive(Clone)]
pub struct Colours {
    /// Colours of the map at even distances, from its beginning to its end.
    shades: Vec<[u8; 3]>,
    low: f64,
    high: f64,
    nan: [u8; 3],
}

/// The number of colours taken from a map: more than the 256 steps of a channel.
const SHADES: usize = 1 << 12;

/// The colour maps by name; all but `turbo` and `rdbu` are perceptually even.
pub const COLOUR_MAPS: [(&str, Gradient); 8] = [
    ("viridis", colorous::VIRIDIS),
    ("magma", colorous::MAGMA),
    ("inferno", colorous::INFERNO),
    ("plasma", colorous::PLASMA),
    ("cividis", colorous::CIVIDIS),
    ("gray", colorous::GREYS),
    ("turbo", colorous::TURBO),
    ("rdbu", colorous::RED_BLUE),
];

impl Colours {
    /// Spread a map over the numbers from `low` to `high`; NaN is grey, and red on the map `gray`.
    pub fn new(map: &str, low: f64, high: f64) -> Option<Colours> {
        let (name, gradient) = *COLOUR_MAPS.iter().find(|(name, _)| *name == map)?;
        let is_gray = name == "gray";
        let nan = if is_gray { [214, 39, 40] } else { [128, 128, 128] };
        let shade = |number: usize| {
            let along = number as f64 / (SHADES - 1) as f64;
            // the greys of the package go from white to black
            gradient.eval_continuous(if is_gray { 1.0 - along } else { along }).as_array()
        };
        Some(Colours { shades: (0..SHADES).map(shade).collect(), low, high, nan })
    }

    fn of(&self, value: f64) -> [u8; 3] {
        if value.is_nan() {
            return self.nan;
        }
        let Colours { low, high, .. } = *self;
        // halved first: the difference of two doubles may be infinite
        let along = (value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0);
        let along = if along.is_nan() { 0.0 } else { along.clamp(0.0, 1.0) };
        self.shades[(along * (SHADES - 1) as f64).round() as usize]
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// Paint ascending elements.
    fn painted(sheet: &Sheet, low: f64, high: f64) -> Vec<Vec<u8>> {
        let colours = Colours::new("gray", low, high).unwrap();
        let row = |y| {
            let read = |range: Range<u64>, take: &mut dyn FnMut(f64)| {
                range.for_each(|number| take(number as f64));
                Ok::<(), Infallible>(())
            };
            sheet.paint(y, &colours, read).unwrap()
        };
        (0..sheet.height()).map(row).collect()
    }

    #[test]
    fn a_pixel_shows_an_element() {
        let sheet = Sheet::new(&[2, 3], None, None).unwrap();
        let rows = painted(&sheet, 0.0, 5.0);
        assert_eq!((rows.len(), rows[0].len()), (2, 9));
        let lightness: Vec<u8> = rows.iter().flatten().step_by(3).copied().collect();
        assert!(lightness.is_sorted() && lightness[0] == 0 && lightness[5] == 255, "{lightness:?}");
    }

    #[test]
    fn colours_stay_and_tiles_stand_beside_each_other() {
        let sheet = Sheet::new(&[3, 1, 2, 3], Some(255.0), None).unwrap();
        let rows = painted(&sheet, 0.0, 1.0);
        assert_eq!(rows[0], [0, 1, 2, 3, 4, 5, 0, 0, 0, 6, 7, 8, 9, 10, 11]);
        assert_eq!(rows[1], [0; 15]);
        assert_eq!(rows[2], [12, 13, 14, 15, 16, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn smaller_pictures_show_means_and_larger_ones_repeat() {
        let sheet = Sheet::new(&[4, 4, 3], Some(255.0), Some(2)).unwrap();
        // the mean of elements 0, 3, 12 and 15
        assert_eq!(painted(&sheet, 0.0, 1.0)[0][..3], [8, 9, 10]);
        let sheet = Sheet::new(&[1, 2, 3], Some(255.0), Some(4)).unwrap();
        let rows = painted(&sheet, 0.0, 1.0);
        assert_eq!(rows, vec![vec![0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5]; 2]);
    }

    #[test]
    fn channels_are_clipped_before_their_mean() {
        let sheet = Sheet::new(&[1, 2, 3], Some(1.0), Some(1)).unwrap();
        let read = |_: Range<u64>, take: &mut dyn FnMut(f64)| {
            [-1.0, 0.5, f64::NAN, 0.2, 9.0, f64::NAN].into_iter().for_each(take);
            Ok::<(), Infallible>(())
        };
        let colours = Colours::new("gray", 0.0, 1.0).unwrap();
        assert_eq!(sheet.paint(0, &colours, read).unwrap(), [26, 191, 0]);
        assert!(sheet.is_clipped(-0.1) && !sheet.is_clipped(1.0) && !sheet.is_clipped(f64::NAN));
    }

    #[test]
    fn what_is_no_picture_is_refused() {
        assert_eq!(Sheet::new(&[5], None, None), Err(SheetFault::Axes(1)));
        assert_eq!(
            Sheet::new(&[5, 3], Some(255.0), None).map(|sheet| sheet.has_colours()),
            Ok(false)
        );
        assert_eq!(Sheet::new(&[5, 0], None, None), Err(SheetFault::Empty));
        assert!(matches!(Sheet::new(&[1 << 40, 2], None, None), Err(SheetFault::TooLarge { .. })));
    }
}
