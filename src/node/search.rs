//! Searches, for JavaScript. They run on tokio's blocking pool and not on libuv's, whose four threads other file
//! calls need.

use super::convert::whole;
use super::tree::NativeTree;
use super::{Answer, CancelHandle};
use crate::error::{Error, ErrorCode, Result};
use crate::limits;
use crate::search::regex::{LineMatch, Matcher};
use crate::search::{
    self, Cancel, GlobRequest, GrepRequest, ListEntry, ListRequest, ListResult, ShownLine, Skipped,
    WalkOptions, Walkable,
};
use crate::tree::FileType;
use napi::bindgen_prelude::PromiseRaw;
use napi::{Env, bindgen_prelude::ToNapiValue};
use napi_derive::napi;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

#[napi(object, object_to_js = false)]
pub struct NativeSearchRequest {
    /// Of glob and grep.
    pub pattern: Option<String>,
    pub path: String,
    pub max_results: f64,
    pub max_files_scanned: f64,
    pub ignore: Vec<String>,
    pub gitignore: bool,
    /// Characters of a text answer.
    pub max_chars: f64,
    /// Of list.
    pub recursive: Option<bool>,
    /// The rest is of grep.
    pub glob: Option<String>,
    pub ignore_case: Option<bool>,
    pub literal: Option<bool>,
    pub context: Option<f64>,
}

#[napi(object, object_from_js = false)]
pub struct NativeGlobResult {
    pub paths: Vec<String>,
    pub truncated: bool,
    pub files_scanned: u32,
    pub unreadable: u32,
}

#[napi(object, object_from_js = false)]
pub struct NativeGrepMatch {
    pub path: String,
    pub line: u32,
    pub column: u32,
    pub text: String,
    pub before: Vec<String>,
    pub after: Vec<String>,
}

#[napi(object, object_from_js = false)]
pub struct NativeGrepResult {
    pub matches: Vec<NativeGrepMatch>,
    pub truncated: bool,
    pub files_scanned: u32,
    pub skipped_binary: u32,
    pub skipped_large: u32,
    pub unreadable: u32,
}

#[napi]
impl NativeTree {
    #[napi(ts_return_type = "Promise<NativeGlobResult>")]
    pub fn glob<'env>(
        &self,
        env: &'env Env,
        request: NativeSearchRequest,
        cancel: Option<&CancelHandle>,
    ) -> napi::Result<PromiseRaw<'env, NativeGlobResult>> {
        run(env, self.tree(), request, cancel, |tree, request, cancel| {
            let found = search::glob(tree, &request.glob_request()?, cancel)?;
            Ok(NativeGlobResult {
                truncated: found.truncated(),
                files_scanned: found.files_scanned as u32,
                unreadable: unreadable(&found.skipped),
                paths: found.paths,
            })
        })
    }

    #[napi(ts_return_type = "Promise<string>")]
    pub fn glob_text<'env>(
        &self,
        env: &'env Env,
        request: NativeSearchRequest,
        cancel: Option<&CancelHandle>,
    ) -> napi::Result<PromiseRaw<'env, String>> {
        run(env, self.tree(), request, cancel, |tree, request, cancel| {
            glob_text(tree, request, cancel)
        })
    }

    #[napi(ts_return_type = "Promise<NativeGrepResult>")]
    pub fn grep<'env>(
        &self,
        env: &'env Env,
        request: NativeSearchRequest,
        cancel: Option<&CancelHandle>,
    ) -> napi::Result<PromiseRaw<'env, NativeGrepResult>> {
        run(env, self.tree(), request, cancel, |tree, request, cancel| {
            let context = request.context()?;
            let found = grep(tree, request, cancel)?;
            Ok(NativeGrepResult {
                truncated: found.truncated(),
                files_scanned: found.files_scanned as u32,
                skipped_binary: found.skipped.binary_files as u32,
                skipped_large: found.skipped.large_files as u32,
                unreadable: unreadable(&found.skipped),
                matches: found
                    .files
                    .iter()
                    .flat_map(|file| matches(file, context))
                    .collect(),
            })
        })
    }

    #[napi(ts_return_type = "Promise<string>")]
    pub fn grep_text<'env>(
        &self,
        env: &'env Env,
        request: NativeSearchRequest,
        cancel: Option<&CancelHandle>,
    ) -> napi::Result<PromiseRaw<'env, String>> {
        run(env, self.tree(), request, cancel, |tree, request, cancel| {
            grep_text(tree, request, cancel)
        })
    }

    #[napi(ts_return_type = "Promise<string>")]
    pub fn list_text<'env>(
        &self,
        env: &'env Env,
        request: NativeSearchRequest,
        cancel: Option<&CancelHandle>,
    ) -> napi::Result<PromiseRaw<'env, String>> {
        run(env, self.tree(), request, cancel, |tree, request, cancel| {
            if request.recursive == Some(true) {
                return list_text(tree, request, cancel);
            }
            let entries = tree.read_dir(&request.path, false)?;
            let entries = entries
                .into_iter()
                .map(|entry| (entry.name, entry.file_type))
                .collect();
            listing_text(entries, request.max_results, request.max_chars)
        })
    }
}

/// Runs `job` off the event loop, with a token that `cancel` sets.
pub(super) fn run<'env, P, T>(
    env: &'env Env,
    place: Arc<P>,
    request: NativeSearchRequest,
    cancel: Option<&CancelHandle>,
    job: impl FnOnce(&P, &NativeSearchRequest, &dyn Cancel) -> Result<T> + Send + 'static,
) -> napi::Result<PromiseRaw<'env, T>>
where
    P: ?Sized + Send + Sync + 'static,
    T: ToNapiValue + Send + 'static,
{
    let token = cancel.map_or_else(CancellationToken::new, CancelHandle::token);
    env.spawn_future(async move {
        // A panic is caught by the join handle and must not end the process.
        let done = tokio::task::spawn_blocking(move || job(&place, &request, &token)).await;
        let failed = |_| {
            Error::new(
                ErrorCode::Internal,
                "the search failed unexpectedly; please report it",
            )
        };
        Ok(done.map_err(failed)??)
    })
}

pub(super) fn glob_text(
    place: &(impl Walkable + ?Sized),
    request: &NativeSearchRequest,
    cancel: &dyn Cancel,
) -> Result<String> {
    let found = search::glob(place, &request.glob_request()?, cancel)?;
    Ok(search::glob_text(&found, request.max_chars()?))
}

pub(super) fn grep_text(
    place: &(impl Walkable + ?Sized),
    request: &NativeSearchRequest,
    cancel: &dyn Cancel,
) -> Result<String> {
    let found = grep(place, request, cancel)?;
    Ok(search::grep_text(&found, request.max_chars()?))
}

pub(super) fn list_text(
    place: &(impl Walkable + ?Sized),
    request: &NativeSearchRequest,
    cancel: &dyn Cancel,
) -> Result<String> {
    let found = search::list(place, &request.list_request()?, cancel)?;
    Ok(search::list_text(&found, request.max_chars()?))
}

/// A listing of one directory, in the words of the recursive one.
pub(super) fn listing_text(
    mut entries: Vec<(String, FileType)>,
    max_results: f64,
    max_chars: f64,
) -> Result<String> {
    let max_results = whole("maxResults", max_results, 1)? as usize;
    let stop = (entries.len() > max_results).then_some(search::Stop::MaxResults);
    let files_scanned = entries.len();
    entries.sort();
    let entries = entries.into_iter().take(max_results);
    let entries = entries
        .map(|(path, file_type)| ListEntry { path, file_type })
        .collect();
    let list = ListResult {
        entries,
        stop,
        files_scanned,
        skipped: Skipped::default(),
    };
    Ok(search::list_text(
        &list,
        whole("maxOutputChars", max_chars, 1)? as usize,
    ))
}

impl NativeSearchRequest {
    fn pattern(&self) -> Result<&str> {
        let missing = || Error::new(ErrorCode::InvalidArgument, "pattern is missing");
        self.pattern.as_deref().ok_or_else(missing)
    }

    fn max_results(&self) -> Result<usize> {
        Ok(whole("maxResults", self.max_results, 1)? as usize)
    }

    fn max_chars(&self) -> Result<usize> {
        Ok(whole("maxOutputChars", self.max_chars, 1)? as usize)
    }

    fn context(&self) -> Result<usize> {
        let context = whole("context", self.context.unwrap_or(0.0), 0)? as usize;
        if context > limits::MAX_GREP_CONTEXT_LINES {
            let message = format!(
                "context is {context} lines, at most {}: read the file instead",
                limits::MAX_GREP_CONTEXT_LINES
            );
            return Err(Error::new(ErrorCode::InvalidArgument, message));
        }
        Ok(context)
    }

    fn walk(&self) -> Result<WalkOptions> {
        Ok(WalkOptions {
            skip_names: self.ignore.clone(),
            gitignore: self.gitignore,
            max_files_scanned: whole("maxFilesScanned", self.max_files_scanned, 1)? as usize,
            ..WalkOptions::default()
        })
    }

    fn glob_request(&self) -> Result<GlobRequest> {
        let mut request = GlobRequest::new(self.pattern()?);
        request.path.clone_from(&self.path);
        request.max_results = self.max_results()?;
        request.walk = self.walk()?;
        Ok(request)
    }

    fn list_request(&self) -> Result<ListRequest> {
        Ok(ListRequest {
            path: self.path.clone(),
            max_results: self.max_results()?,
            walk: self.walk()?,
        })
    }

    fn grep_request(&self) -> Result<GrepRequest> {
        let mut request = GrepRequest::new(self.pattern()?);
        request.path.clone_from(&self.path);
        request.max_results = self.max_results()?;
        request.walk = self.walk()?;
        request.glob.clone_from(&self.glob);
        request.ignore_case = self.ignore_case.unwrap_or(false);
        request.literal = self.literal.unwrap_or(false);
        request.context = self.context()?;
        Ok(request)
    }
}

/// A step limit is a failure: what lies behind it was not looked at.
fn grep(
    place: &(impl Walkable + ?Sized),
    request: &NativeSearchRequest,
    cancel: &dyn Cancel,
) -> Result<search::GrepResult> {
    let found = search::grep(place, &request.grep_request()?, cancel)?;
    match search::step_limit_error(&found) {
        Some(error) => Err(error),
        None => Ok(found),
    }
}

/// For each line: 1 a match, 0 none, 2 not decided (too long or too many steps). For the comparison with V8.
#[napi(ts_return_type = "number[] | Promise<number[]>")]
pub fn regex_test(pattern: String, ignore_case: bool, lines: Vec<String>) -> napi::Result<Answer<Vec<u32>>> {
    Answer::run(false, move || {
        let matcher = Matcher::javascript(&pattern, ignore_case)?;
        let decide = |line: &String| match matcher.match_line(line) {
            LineMatch::At { .. } => 1,
            LineMatch::No => 0,
            LineMatch::TooLong | LineMatch::TooHard => 2,
        };
        Ok(lines.iter().map(decide).collect())
    })
}

fn unreadable(skipped: &Skipped) -> u32 {
    (skipped.unreadable_files + skipped.unreadable_directories) as u32
}

/// Each matching line of a file with the lines around it.
fn matches(file: &search::FileMatches, context: usize) -> impl Iterator<Item = NativeGrepMatch> + '_ {
    file.lines.iter().enumerate().filter_map(move |(at, hit)| {
        let near = |other: &&ShownLine| hit.line.abs_diff(other.line) <= context;
        let mut before: Vec<String> = file.lines[..at]
            .iter()
            .rev()
            .take_while(near)
            .map(text_of)
            .collect();
        before.reverse();
        Some(NativeGrepMatch {
            path: file.path.clone(),
            line: hit.line as u32,
            column: hit.column? as u32,
            text: hit.text.clone(),
            before,
            after: file.lines[at + 1..]
                .iter()
                .take_while(near)
                .map(text_of)
                .collect(),
        })
    })
}

fn text_of(line: &ShownLine) -> String {
    line.text.clone()
}
