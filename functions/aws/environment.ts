/** The environment of a Lambda, read once at its start. */
export interface Environment {
  /** The variable's value. */
  readonly required: (name: string) => string;
  readonly optional: (name: string) => string | undefined;
}

/** @throws naming every variable of `names` that is missing, and the function that needs it */
export function environmentOf(variables: Readonly<Record<string, string | undefined>>, functionName: string, names: readonly string[]): Environment {
  const missing = names.filter((name) => !variables[name]);
  if (missing.length > 0) throw new Error(`${functionName}: the environment lacks ${missing.join(", ")}; infra/ sets it, so deploy again`);
  return {
    required: (name) => {
      if (!names.includes(name)) throw new Error(`${functionName}: ${name} was not asked for`);
      return variables[name] as string;
    },
    optional: (name) => variables[name] || undefined,
  };
}

/** The keys of the function's role, as Lambda gives them. */
export const credentialsIn = (variables: Readonly<Record<string, string | undefined>>) => () => ({
  accessKeyId: variables["AWS_ACCESS_KEY_ID"] ?? "",
  secretAccessKey: variables["AWS_SECRET_ACCESS_KEY"] ?? "",
  sessionToken: variables["AWS_SESSION_TOKEN"],
});
