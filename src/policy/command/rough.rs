//! A second, cruder reading of a line that the grammar could not read with certainty: every run of words between
//! anything that might separate commands. It finds too much, so it is used only to deny.

/// The word lists, quotes and backslashes dropped.
pub fn rough_commands(line: &str) -> Vec<Vec<String>> {
    let joined = line.replace("\\\n", "");
    joined
        .split([';', '&', '|', '\n', '\r', '(', ')', '`', '{', '}'])
        .map(|part| {
            part.split([' ', '\t'])
                .map(|word| {
                    word.chars()
                        .filter(|c| !matches!(c, '\'' | '"' | '\\' | '$'))
                        .collect::<String>()
                })
                .filter(|word| !word.is_empty())
                .collect::<Vec<String>>()
        })
        .filter(|words| !words.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::rough_commands;

    #[test]
    fn everything_that_might_be_a_command_is_listed() {
        let found = rough_commands("if a; then r'm' \"-rf\" x && $(b c) `d`\ne \\\nf");
        let expected: [&[&str]; 6] = [
            &["if", "a"],
            &["then", "rm", "-rf", "x"],
            &["b", "c"],
            &["d"],
            &["e", "f"],
            &[],
        ];
        let expected: Vec<Vec<String>> = expected
            .iter()
            .filter(|words| !words.is_empty())
            .map(|words| words.iter().map(|word| (*word).to_owned()).collect())
            .collect();
        assert_eq!(found, expected);
    }
}
