import { ArnFormat, NestedStack, Stack } from "aws-cdk-lib";
import { CfnDocument } from "aws-cdk-lib/aws-ssm";
import { Construct } from "constructs";
import { allScripts } from "../functions/cli/all-scripts.ts";
import type { Catalogue } from "../functions/rules/load.ts";
import { ssmDocument } from "../functions/transports/ssm-document.ts";

/** Systems Manager refuses larger documents. */
const MAX_BYTES = 64 * 1024;
/** A template holds 1 MB, and a document takes about 14 KB of it. */
const DOCUMENTS_PER_TEMPLATE = 30;

/** Each script as a Systems Manager document, with the script baked in, in nested stacks because of their size. Who may run these can run nothing else. */
export class ScriptDocuments extends Construct {
  readonly names: readonly string[];
  readonly arns: readonly string[];

  /** @throws if a script is too long for a document */
  constructor(scope: Construct, id: string, catalogue: Catalogue) {
    super(scope, id);
    const scripts = allScripts(catalogue);
    const parts = Array.from({ length: Math.ceil(scripts.length / DOCUMENTS_PER_TEMPLATE) }, (_, index) => new NestedStack(this, `Part${index + 1}`));
    this.names = scripts.map((script, index) => {
      const { name, content } = ssmDocument(script);
      const bytes = Buffer.byteLength(content);
      if (bytes > MAX_BYTES) throw new Error(`${name} has ${bytes} bytes and a Systems Manager document holds ${MAX_BYTES}: split its runbook`);
      new CfnDocument(parts[Math.floor(index / DOCUMENTS_PER_TEMPLATE)] as NestedStack, name, {
        name,
        documentType: "Command",
        documentFormat: "JSON",
        targetType: "/",
        content: JSON.parse(content) as unknown,
        // a change becomes the new default version; replacing would delete what is running
        updateMethod: "NewVersion",
      });
      return name;
    });
    this.arns = this.names.map((resourceName) =>
      Stack.of(this).formatArn({ service: "ssm", resource: "document", resourceName, arnFormat: ArnFormat.SLASH_RESOURCE_NAME }),
    );
  }
}
