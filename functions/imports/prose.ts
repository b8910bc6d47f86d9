/** Words that no command has, and sentences are full of. */
const WORDS =
  /(?:^|\s)(?:the|is|are|was|were|not|with|when|while|after|because|this|that|these|my|i|we|it|its|does|doesn't|don't|cannot|can't|fails?|failed|failing|reporting|changes|only|for|and|or|of|how|why|result|good|works?|working|issue|problem)(?=[\s,.:;!?]|$)/gi;

/** `for i in eth0 eth1; do …; done`: words of a shell. */
const LOOP = /^for \w{1,40} in \S.{0,2000}?[;\n]\s{0,8}do\s.{0,2000}\bdone\b/s;

/** "docker version 1.12", "calico version: v3.26": what somebody has, in a list of such. */
const VERSION = /^[a-z][\w.-]{1,40} versions?[ \t]{0,4}[:=]?[ \t]{0,4}v?\d/;

const wordsIn = (text: string): number => text.match(WORDS)?.length ?? 0;

/** True for what begins with the name of a program and is a sentence: `ping failed for only some pods`. */
export function isProse(command: string): boolean {
  if (LOOP.test(command)) return false;
  if (VERSION.test(command)) return true;
  const words = wordsIn(command.replaceAll(/"[^"]*"|'[^']*'/g, ""));
  return words > 1 || (words === 1 && !/(?:^|\s)-\w|\S\/\S|\||=\S|\d\.\d/.test(command));
}

/** "I then found this chain:" */
const ANNOUNCEMENT = /^(?:I|[Ww]e|Here|This|These|Then|After|But|And|So|My|Our) [^:=|]{15,300}:$/;

/** "Any idea?", "What am I missing here?" */
const QUESTION = /^[A-Z][\w',/ -]{3,200}\?$/;

/** What stands below a mail. */
const SIGN_OFF = /^(?:(?:[Mm]any )?[Tt]hanks|[Tt]hank you|[Tt]hx|[Cc]heers|(?:[Kk]ind |[Bb]est )?[Rr]egards|[Gg]reetings)(?:[ ,.!][^:=|]{0,60})?$/;

/** True for a line that people wrote, not a program. */
export const isSentence = (line: string): boolean =>
  line.length < 4000 &&
  (ANNOUNCEMENT.test(line) ||
    QUESTION.test(line) ||
    SIGN_OFF.test(line) ||
    (/^(?:[A-Z]|[\w']+ )[^:=|]{20,}$/.test(line) ? wordsIn(line) > 1 : /^(?:#{1,6} |\*\*)[A-Z]|\p{Script=Han}{6}/u.test(line)));
