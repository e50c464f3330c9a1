//! How much of a command there may be.

use model::limits;

pub(super) const BOUNDS: &[(&str, usize, &[&str])] = &[
    (
        "maximum",
        limits::OUTPUT_MAX,
        &[
            "ShellTarget.output_max",
            "ShellRequest.output_max",
            "ShellPatch.output_max",
        ],
    ),
    (
        "maxItems",
        limits::COMMAND_PARTS_MAX,
        &[
            "ShellTarget.command",
            "ShellRequest.command",
            "ShellPatch.command",
        ],
    ),
    (
        "maxItems",
        limits::EXIT_CODES_MAX,
        &[
            "ShellRequest.success",
            "ShellRequest.retry",
            "ShellRequest.fail",
            "ShellRequest.dead",
            "ShellPatch.success",
            "ShellPatch.retry",
            "ShellPatch.fail",
            "ShellPatch.dead",
        ],
    ),
    (
        "minItems",
        1,
        &[
            "ShellTarget.command",
            "ShellRequest.command",
            "ShellPatch.command",
        ],
    ),
    (
        "maxLength",
        limits::PATH_MAX,
        &["ShellTarget.dir", "ShellRequest.dir", "ShellPatch.dir"],
    ),
    (
        "maxProperties",
        limits::ENV_MAX,
        &["ShellTarget.env", "ShellRequest.env"],
    ),
];
