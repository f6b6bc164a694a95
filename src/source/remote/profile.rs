//! The profile of `~/.aws/credentials` and `~/.aws/config` that AWS's own tools use.

use std::collections::HashMap;
use std::env;
use std::fs;
use std::path::PathBuf;

/// What a profile says: values by the names of settings. The file of credentials comes first.
#[derive(Default)]
pub(super) struct Profile(HashMap<String, String>);

impl Profile {
    /// The profile that `AWS_PROFILE` names, or `default`; nothing where there is none.
    pub(super) fn read() -> Profile {
        let name = env::var("AWS_PROFILE").unwrap_or_else(|_| "default".to_owned());
        let file = |variable: &str, name: &str| {
            let path = env::var_os(variable).map(PathBuf::from);
            let path = path.or_else(|| Some(env::home_dir()?.join(".aws").join(name)))?;
            fs::read_to_string(path).ok()
        };
        let mut profile = Profile::default();
        if let Some(text) = file("AWS_SHARED_CREDENTIALS_FILE", "credentials") {
            profile.add(&text, &name);
        }
        if let Some(text) = file("AWS_CONFIG_FILE", "config") {
            let section = if name == "default" { name } else { format!("profile {name}") };
            profile.add(&text, &section);
        }
        profile
    }

    /// The value of a setting.
    pub(super) fn get(&self, key: &str) -> Option<&String> {
        self.0.get(key)
    }

    /// Take what is not known yet from a section of a text.
    fn add(&mut self, text: &str, section: &str) {
        let mut inside = false;
        for line in text.lines() {
            let trimmed = line.trim();
            if let Some(name) = trimmed.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
                inside = name.split_whitespace().eq(section.split_whitespace());
                continue;
            }
            // indented lines belong to the setting above them
            let nested = line.starts_with([' ', '\t']);
            let Some((key, value)) = trimmed.split_once('=').filter(|_| inside && !nested) else {
                continue;
            };
            let value = value.trim();
            if !value.is_empty() {
                self.0.entry(key.trim().to_owned()).or_insert_with(|| value.to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_section_of_the_profile_is_read() {
        let text = "# keys\n[default]\naws_access_key_id = A\n\n[ other ]\nregion=eu-1\n\
                    aws_access_key_id=B\ns3 =\n  endpoint_url = http://no\naws_session_token = \n";
        let mut profile = Profile::default();
        profile.add(text, "other");
        profile.add("[profile other]\nregion = us-2\nendpoint_url = http://e\n", "profile other");
        let expected =
            [("aws_access_key_id", "B"), ("region", "eu-1"), ("endpoint_url", "http://e")];
        let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(profile.0, HashMap::from(expected));
    }
}
