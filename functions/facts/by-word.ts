/** A table that is asked with words of a text. Every object has a `constructor` and a `toString`; this one has only what it is given. */
export const byWord = <T>(table: Readonly<Record<string, T>>): Readonly<Record<string, T>> => Object.assign(Object.create(null) as Record<string, T>, table);
