/** The shell tool's `allow` and `deny` lists. A lexical gate: what an allowed program starts is not seen. */
import { findCommands } from '#native';
import { callSync } from '../call.js';

/** What lets one command line run more than its first command. */
const OPERATOR = /[;&|`<>\n\r]|\$\(/;

type Rule = string | RegExp;

/** Why `command` is refused, or undefined. */
export function checkRules(command: string, allow: Rule[] | undefined, deny: Rule[] | undefined): string | undefined {
  const denied = deny?.find((rule) => matchesAnyPart(command, rule));
  if (denied) return `the command is refused by the deny rule ${show(denied)}: find another way`;
  if (!allow || allow.some((rule) => allows(command, rule))) return undefined;
  const operators = allow.some((rule) => typeof rule === 'string' && startsWithRule(command, rule));
  return operators
    ? 'the command is refused: with an allow list, shell operators (; & | ` $( < > newline) are not allowed; run one command per call'
    : `the command is not on the allow list (${allow.map(show).join(', ')})`;
}

function allows(command: string, rule: Rule): boolean {
  if (typeof rule !== 'string') return test(rule, command);
  return startsWithRule(command, rule) && !OPERATOR.test(command);
}

/** A string is compared with each simple command the line would start, wrappers looked through, quotes removed. */
function matchesAnyPart(command: string, rule: Rule): boolean {
  if (typeof rule !== 'string') return test(rule, command);
  const words = rule.trim().split(/\s+/);
  return callSync(() => findCommands(command)).commands.some((found) => startsWithWords(found, words));
}

/** `/bin/rm` is `rm`; a word that only the shell knows could be any, so it does not save the command. */
function startsWithWords(found: readonly (string | null | undefined)[], words: readonly string[]): boolean {
  return words.every((word, index) => {
    const own = found[index];
    if (index >= found.length) return false;
    if (own === null || own === undefined) return index > 0;
    return own === word || (index === 0 && own.slice(own.lastIndexOf('/') + 1) === word);
  });
}

function startsWithRule(command: string, rule: string): boolean {
  return command === rule || command.startsWith(`${rule} `);
}

/** A `g` or `y` flag would make a shared RegExp answer differently the second time. */
function test(rule: RegExp, command: string): boolean {
  rule.lastIndex = 0;
  return rule.test(command);
}

function show(rule: Rule): string {
  return typeof rule === 'string' ? `"${rule}"` : String(rule);
}
