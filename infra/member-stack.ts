import { CfnOutput, Stack, type StackProps } from "aws-cdk-lib";
import { ArnPrincipal, Role } from "aws-cdk-lib/aws-iam";
import type { Construct } from "constructs";
import type { Catalogue } from "../functions/rules/load.ts";
import { DataBucket } from "./data-bucket.ts";
import { EncryptionKey } from "./encryption-key.ts";
import { grantNodeAccess } from "./node-access.ts";
import { AccessLogs } from "./private-bucket.ts";
import { ScriptDocuments } from "./script-documents.ts";
import type { MemberSettings } from "./settings.ts";

export interface MemberStackProps extends StackProps {
  readonly settings: MemberSettings;
  readonly catalogue: Catalogue;
}

/** What another account or region needs so that its nodes can be examined: the documents, a bucket for long answers, a role for the main stack. */
export class MemberStack extends Stack {
  constructor(scope: Construct, id: string, { settings, catalogue, ...props }: MemberStackProps) {
    super(scope, id, { description: "netcheck: nodes of this account and region", ...props });
    const { hubRole, externalId, tag, logDays } = settings;
    const key = new EncryptionKey(this, "Encryption", { forFunctions: false });
    const data = new DataBucket(this, "Data", key, new AccessLogs(this, "AccessLogs", logDays));
    const documents = new ScriptDocuments(this, "Documents", catalogue);
    const role = new Role(this, "Role", {
      assumedBy: new ArnPrincipal(hubRole),
      externalIds: [externalId],
      description: "netcheck: lets the triage function of the main account run our documents here",
    });
    grantNodeAccess(this, role, { documents, tag, outputBucketArn: data.bucket.bucketArn });
    data.grantOutputs(role);
    key.use(role, ["s3"], "read");
    new CfnOutput(this, "MemberRole", { value: role.roleArn, description: "One of memberRoles of the main stack" });
    new CfnOutput(this, "DataBucketName", { value: data.bucket.bucketName, description: "outputBucket of this account's clusters in netcheck.yaml" });
  }
}
