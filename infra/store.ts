import { RemovalPolicy } from "aws-cdk-lib";
import { AttributeType, BillingMode, StreamViewType, Table, TableEncryption } from "aws-cdk-lib/aws-dynamodb";
import { type IRole, PolicyStatement, type Role } from "aws-cdk-lib/aws-iam";
import { Construct } from "constructs";
import { LIST_INDEX } from "../functions/store/dynamodb.ts";
import type { EncryptionKey } from "./encryption-key.ts";

/** Incidents, proposals, audit events, locks: one table (functions/store/dynamodb.ts). It stays when the stack is destroyed. */
export class Store extends Construct {
  readonly table: Table;
  /** ARN of the stream of changes, for the archive. */
  readonly streamArn: string;

  constructor(scope: Construct, id: string, key: EncryptionKey) {
    super(scope, id);
    const string = (name: string) => ({ name, type: AttributeType.STRING });
    this.table = new Table(this, "Table", {
      partitionKey: string("pk"),
      sortKey: string("sk"),
      billingMode: BillingMode.PAY_PER_REQUEST,
      encryption: TableEncryption.CUSTOMER_MANAGED,
      encryptionKey: key.key,
      pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: true },
      timeToLiveAttribute: "expires",
      stream: StreamViewType.NEW_IMAGE,
      deletionProtection: true,
      removalPolicy: RemovalPolicy.RETAIN,
    });
    this.table.addGlobalSecondaryIndex({ indexName: LIST_INDEX, partitionKey: string("list"), sortKey: string("listed") });
    this.streamArn = this.table.tableStreamArn as string;
  }

  /** Lets a role read and write items, which is what the store does; it deletes and scans nothing and changes no settings. */
  grantUse(role: Role): void {
    const { tableArn } = this.table;
    role.addToPolicy(
      new PolicyStatement({
        actions: ["dynamodb:BatchGetItem", "dynamodb:ConditionCheckItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query"],
        resources: [tableArn],
      }),
    );
    role.addToPolicy(new PolicyStatement({ actions: ["dynamodb:Query"], resources: [`${tableArn}/index/${LIST_INDEX}`] }));
  }

  /** Lets a role look things up. */
  grantLook(role: Role): void {
    const { tableArn } = this.table;
    role.addToPolicy(new PolicyStatement({ actions: ["dynamodb:GetItem"], resources: [tableArn] }));
    role.addToPolicy(new PolicyStatement({ actions: ["dynamodb:Query"], resources: [`${tableArn}/index/${LIST_INDEX}`] }));
  }

  /** Lets a role follow the changes. */
  grantFollow(role: IRole): void {
    role.addToPrincipalPolicy(
      new PolicyStatement({
        actions: ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator", "dynamodb:ListStreams"],
        resources: [this.streamArn],
      }),
    );
  }
}
