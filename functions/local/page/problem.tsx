/** Says what went wrong, also to who does not see the page; nothing where nothing did. */
export function Problem({ text }: { readonly text: string | undefined }) {
  if (text === undefined) return null;
  return (
    <p className="error" role="alert">
      {text}
    </p>
  );
}
