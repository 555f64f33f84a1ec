//! What counts as a change of a table.

/// The tables with their columns pressed together and without ages, which change all the time.
pub(crate) fn without_ages(tables: &str) -> String {
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().filter(|word| !is_age(word)).collect();
        words.join(" ")
    };
    tables.lines().map(row).collect::<Vec<_>>().join("\n")
}

/// Whether `word` is an age as kubectl prints it, such as `5s`, `2m30s` or `3d4h`.
fn is_age(word: &str) -> bool {
    let units = word.chars().filter(|letter| matches!(letter, 's' | 'm' | 'h' | 'd')).count();
    let digits = word.chars().filter(char::is_ascii_digit).count();
    units > 0 && digits > 0 && units + digits == word.chars().count() && !word.ends_with(|c: char| c.is_ascii_digit())
}

/// The cells of the row whose first cell is `name`, if there is one.
pub(crate) fn row<'t>(tables: &'t str, name: &str) -> Option<Vec<&'t str>> {
    tables.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).find(|cells| cells.first() == Some(&name))
}
