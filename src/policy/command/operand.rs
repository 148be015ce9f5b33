//! Which operands of a command are files it writes, moves or removes.

use super::word::Word;
use super::wrapper::base_name;

/// The operands of `words` that are written. Options are stepped over; a value of an option that is taken for an
/// operand makes the answer stricter, never looser.
pub fn written_operands(words: &[Word]) -> Vec<Word> {
    let Some(name) = words.first().and_then(Word::fixed) else {
        return Vec::new();
    };
    let arguments = &words[1..];
    let operands = operands(arguments);
    match base_name(&name) {
        "touch" | "mkdir" | "rm" | "rmdir" | "tee" | "truncate" | "shred" | "unlink" | "mkfifo" | "mknod"
        | "mv" | "fallocate" => operands,
        "chmod" | "chown" | "chgrp" => {
            let by_reference = arguments
                .iter()
                .any(|word| word.fixed_start().starts_with("--reference"));
            operands.into_iter().skip(usize::from(!by_reference)).collect()
        }
        "install" if has_option(arguments, 'd', "--directory") => operands,
        "cp" | "ln" | "install" | "link" | "rsync" | "scp" => match target_directory(arguments) {
            Some(directory) => vec![directory],
            // `ln -s target` makes the link here, and its one operand is only pointed to.
            None if operands.len() < 2 => Vec::new(),
            None => operands.last().cloned().into_iter().collect(),
        },
        "dd" => arguments
            .iter()
            .filter(|word| word.fixed_start().starts_with("of="))
            .filter_map(|word| word.without_start(3))
            .collect(),
        "sed" | "gsed" | "perl" | "ruby" if has_option(arguments, 'i', "--in-place") => operands,
        "sort" | "gsort" => option_value(arguments, 'o', "--output").into_iter().collect(),
        "curl" | "gcc" | "cc" | "clang" | "g++" | "ld" => {
            option_value(arguments, 'o', "--output").into_iter().collect()
        }
        "wget" => option_value(arguments, 'O', "--output-document")
            .into_iter()
            .collect(),
        "tar" | "unzip" => option_value(
            arguments,
            if base_name(&name) == "tar" { 'C' } else { 'd' },
            "--directory",
        )
        .into_iter()
        .collect(),
        _ => Vec::new(),
    }
}

fn operands(arguments: &[Word]) -> Vec<Word> {
    let mut only_operands = false;
    arguments
        .iter()
        .filter(|word| {
            let start = word.fixed_start();
            if start == "--" && !only_operands {
                only_operands = true;
                return false;
            }
            only_operands || !start.starts_with('-') || start == "-"
        })
        .cloned()
        .collect()
}

fn has_option(arguments: &[Word], letter: char, long: &str) -> bool {
    arguments.iter().any(|word| {
        let text = word.fixed_start();
        text.starts_with(long) || (text.starts_with('-') && !text.starts_with("--") && text.contains(letter))
    })
}

fn target_directory(arguments: &[Word]) -> Option<Word> {
    option_value(arguments, 't', "--target-directory")
}

/// The value of an option in any of its four spellings.
fn option_value(arguments: &[Word], letter: char, long: &str) -> Option<Word> {
    arguments.iter().enumerate().find_map(|(index, word)| {
        let text = word.fixed_start();
        if text == long {
            return arguments.get(index + 1).cloned();
        }
        if text.strip_prefix(long).is_some_and(|rest| rest.starts_with('=')) {
            return word.without_start(long.len() + 1);
        }
        if !text.starts_with('-') || text.starts_with("--") {
            return None;
        }
        let at = text.chars().position(|c| c == letter)?;
        word.without_start(at + 1)
            .or_else(|| arguments.get(index + 1).cloned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_a_command_writes_are_its_operands_at_the_known_places() {
        for (line, expected) in [
            ("cp a b", "b"),
            ("cp -r a b c", "c"),
            ("cp -t dir a b", "dir"),
            ("cp --target-directory=dir a", "dir"),
            ("mv a b", "a b"),
            ("tee -a f g", "f g"),
            ("install -m 755 a b", "b"),
            ("install -d a b", "a b"),
            ("ln -s a b", "b"),
            ("ln -s a", ""),
            ("dd if=a of=b", "b"),
            ("touch a b", "a b"),
            ("rm -rf -- -x", "-x"),
            ("chmod 644 a b", "a b"),
            ("chmod --reference=r a", "a"),
            ("chown u:g a", "a"),
            ("truncate -s 0 f", "0 f"),
            ("sed -i s/a/b/ f", "s/a/b/ f"),
            ("sed s/a/b/ f", ""),
            ("sort -o out f", "out"),
            ("sort -oout f", "out"),
            ("curl -o out url", "out"),
            ("/bin/rm x", "x"),
            ("cat a", ""),
        ] {
            let words: Vec<Word> = line.split(' ').map(Word::quoted).collect();
            let written: Vec<String> = written_operands(&words).iter().filter_map(Word::fixed).collect();
            assert_eq!(written.join(" "), expected, "{line}");
        }
    }
}
