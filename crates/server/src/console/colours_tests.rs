use std::collections::BTreeMap;

use super::ASSETS;

/// Red, green and blue, from nothing to one.
type Colour = [f64; 3];
type Tokens = BTreeMap<String, String>;

const STATES: [&str; 8] = [
    "ran", "late", "retried", "skipped", "missed", "dead", "running", "planned",
];

/// What eyes that lack one kind of cone see (Machado, Oliveira and Fernandes, 2009, full strength), of linear light.
const EYES: [(&str, [[f64; 3]; 3]); 4] = [
    (
        "normal",
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    ),
    (
        "protanopia",
        [
            [0.152_286, 1.052_583, -0.204_868],
            [0.114_503, 0.786_281, 0.099_216],
            [-0.003_882, -0.048_116, 1.051_998],
        ],
    ),
    (
        "deuteranopia",
        [
            [0.367_322, 0.860_646, -0.227_968],
            [0.280_085, 0.672_501, 0.047_413],
            [-0.011_820, 0.042_940, 0.968_881],
        ],
    ),
    (
        "tritanopia",
        [
            [1.255_528, -0.076_749, -0.178_779],
            [-0.078_411, 0.930_809, 0.147_602],
            [0.004_733, 0.691_367, 0.303_900],
        ],
    ),
];

/// The tokens of each block that sets the canvas: light, dark by the system, dark by choice.
fn schemes() -> Vec<Tokens> {
    let style = String::from_utf8(ASSETS.style.plain.to_vec()).unwrap();
    let blocks = style.split('{').map(|rest| rest.split('}').next().unwrap());
    let blocks = blocks.filter(|block| block.contains("--canvas:"));
    let token = |line: &str| {
        let (name, value) = line.trim().strip_prefix("--")?.split_once(':')?;
        Some((name.trim().to_owned(), value.trim().to_owned()))
    };
    blocks
        .map(|block| block.split(';').filter_map(token).collect())
        .collect()
}

fn linear(text: &str) -> Colour {
    let digits = text.strip_prefix('#').unwrap_or_else(|| panic!("{text}"));
    [0, 2, 4].map(|at| {
        let value = u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
        let value = f64::from(value) / 255.0;
        if value <= 0.040_45 {
            value / 12.92
        } else {
            ((value + 0.055) / 1.055).powf(2.4)
        }
    })
}

fn contrast(tokens: &Tokens, one: &str, other: &str) -> f64 {
    let light = |name: &str| {
        let [red, green, blue] = linear(&tokens[name]);
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    };
    let (one, other) = (light(one), light(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

fn lab(linear: Colour, eyes: &[[f64; 3]; 3]) -> Colour {
    let of = |row: &[f64; 3]| -> f64 {
        let sum: f64 = row.iter().zip(linear).map(|(by, value)| by * value).sum();
        sum.clamp(0.0, 1.0)
    };
    let [red, green, blue] = [of(&eyes[0]), of(&eyes[1]), of(&eyes[2])];
    let x = 0.412_456_4 * red + 0.357_576_1 * green + 0.180_437_5 * blue;
    let y = 0.212_672_9 * red + 0.715_152_2 * green + 0.072_175_0 * blue;
    let z = 0.019_333_9 * red + 0.119_192_0 * green + 0.950_304_1 * blue;
    let f = |value: f64| {
        if value > 216.0 / 24_389.0 {
            value.cbrt()
        } else {
            (24_389.0 / 27.0 * value + 16.0) / 116.0
        }
    };
    let (x, y, z) = (f(x / 0.950_47), f(y), f(z / 1.088_83));
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

/// How different two colours are to people (CIEDE2000).
fn difference([l1, a1, b1]: Colour, [l2, a2, b2]: Colour) -> f64 {
    let mean = (a1.hypot(b1) + a2.hypot(b2)) / 2.0;
    let seven = |value: f64| (value.powi(7) / (value.powi(7) + 25.0_f64.powi(7))).sqrt();
    let g = 0.5 * (1.0 - seven(mean));
    let (a1, a2) = (a1 * (1.0 + g), a2 * (1.0 + g));
    let (c1, c2) = (a1.hypot(b1), a2.hypot(b2));
    let hue = |a: f64, b: f64| b.atan2(a).to_degrees().rem_euclid(360.0);
    let (h1, h2) = (hue(a1, b1), hue(a2, b2));
    let is_grey = c1 * c2 == 0.0;
    let mut turn = if is_grey { 0.0 } else { h2 - h1 };
    if turn > 180.0 {
        turn -= 360.0;
    } else if turn < -180.0 {
        turn += 360.0;
    }
    let (dl, dc) = (l2 - l1, c2 - c1);
    let dh = 2.0 * (c1 * c2).sqrt() * (turn / 2.0).to_radians().sin();
    let (l, c) = ((l1 + l2) / 2.0, (c1 + c2) / 2.0);
    let h = if is_grey {
        h1 + h2
    } else {
        (h1 + turn / 2.0).rem_euclid(360.0)
    };
    let cos = |by: f64, less: f64| (by * h - less).to_radians().cos();
    let t = 1.0 - 0.17 * cos(1.0, 30.0) + 0.24 * cos(2.0, 0.0) + 0.32 * cos(3.0, -6.0)
        - 0.20 * cos(4.0, 63.0);
    let away = (l - 50.0).powi(2);
    let sl = 1.0 + 0.015 * away / (20.0 + away).sqrt();
    let (sc, sh) = (1.0 + 0.045 * c, 1.0 + 0.015 * c * t);
    let about = 30.0 * (-((h - 275.0) / 25.0).powi(2)).exp();
    let rt = -2.0 * seven(c) * (2.0 * about).to_radians().sin();
    let (l, c, h) = (dl / sl, dc / sc, dh / sh);
    (l * l + c * c + h * h + rt * c * h).sqrt()
}

#[test]
fn the_difference_of_colours_is_that_of_its_paper() {
    // Of the pairs of Sharma, Wu and Dalal.
    for (one, other, expected) in [
        ([50.0, 2.6772, -79.7751], [50.0, 0.0, -82.7485], 2.0425),
        ([50.0, 2.5, 0.0], [73.0, 25.0, -18.0], 27.1492),
        (
            [22.7233, 20.0904, -46.6940],
            [23.0331, 14.9730, -42.5619],
            2.0373,
        ),
        (
            [2.0776, 0.0795, -1.1350],
            [0.9033, -0.0636, -0.5514],
            0.9082,
        ),
    ] {
        let found = difference(one, other);
        assert!((found - expected).abs() < 1e-4, "{found}: {expected}");
    }
}

#[test]
fn words_stand_out_from_what_is_behind_them_in_both_schemes() {
    let schemes = schemes();
    assert_eq!(schemes.len(), 3);
    for tokens in &schemes {
        let at_least = |one: &str, other: &str, least: f64| {
            let found = contrast(tokens, one, other);
            let canvas = &tokens["canvas"];
            assert!(found >= least, "{one} on {other} of {canvas}: {found:.2}");
        };
        for behind in ["canvas", "surface", "sunken"] {
            for text in ["text", "text-2", "text-3", "accent"] {
                at_least(text, behind, 4.5);
            }
        }
        at_least("line-strong", "surface", 3.0);
        at_least("button-text", "button", 4.5);
        at_least("danger-text", "danger", 4.5);
        for state in STATES {
            at_least(state, "surface", 3.0);
            at_least(&format!("{state}-ink"), &format!("{state}-tint"), 4.5);
            at_least(&format!("{state}-ink"), "surface", 4.5);
        }
    }
}

#[test]
fn no_two_states_are_alike_to_anybody() {
    for tokens in &schemes() {
        // What is planned is known by its dot.
        let states = &STATES[..7];
        for (eyes, matrix) in &EYES {
            let seen = |state: &str| lab(linear(&tokens[state]), matrix);
            for (at, one) in states.iter().enumerate() {
                for other in &states[at + 1..] {
                    let found = difference(seen(one), seen(other));
                    let canvas = &tokens["canvas"];
                    assert!(
                        found >= 12.5,
                        "{one}, {other}: {found:.1} ({eyes}, {canvas})"
                    );
                }
            }
        }
    }
}

#[test]
fn dark_is_the_same_by_choice_and_by_the_system() {
    let schemes = schemes();
    assert_eq!(schemes[1], schemes[2]);
    assert_ne!(schemes[0]["canvas"], schemes[1]["canvas"]);
}
