import { RemovalPolicy, Stack } from "aws-cdk-lib";
import { AccessLogFormat } from "aws-cdk-lib/aws-apigateway";
import { HttpApi, HttpMethod, HttpStage, LogGroupLogDestination } from "aws-cdk-lib/aws-apigatewayv2";
import { HttpLambdaIntegration } from "aws-cdk-lib/aws-apigatewayv2-integrations";
import { LogGroup, type RetentionDays } from "aws-cdk-lib/aws-logs";
import { Construct } from "constructs";
import { accept } from "./accept.ts";
import type { AckFunction } from "./ack-function.ts";
import type { EncryptionKey } from "./encryption-key.ts";

/** Requests a second, and at once: many times what a workspace sends, and little enough that strangers cost nothing. */
const THROTTLE = { rateLimit: 50, burstLimit: 100 };

export interface ApiProps {
  readonly key: EncryptionKey;
  readonly logDays: number;
  readonly slack: AckFunction;
  readonly pager: AckFunction;
}

/** The public address: `POST /slack`, `POST /pager/<source>`, and `POST /pager` for pages that you sign yourself. Nothing else answers. */
export class Api extends Construct {
  readonly api: HttpApi;
  readonly url: string;

  constructor(scope: Construct, id: string, { key, logDays, slack, pager }: ApiProps) {
    super(scope, id);
    const log = new LogGroup(this, "AccessLog", { retention: logDays as RetentionDays, encryptionKey: key.key, removalPolicy: RemovalPolicy.DESTROY });
    this.api = new HttpApi(this, "Http", { apiName: Stack.of(this).stackName, description: "netcheck", createDefaultStage: false });
    const stage = new HttpStage(this, "Stage", {
      httpApi: this.api,
      stageName: "$default",
      autoDeploy: true,
      throttle: THROTTLE,
      detailedMetricsEnabled: true,
      // no headers and no bodies: they hold signatures and what people wrote
      accessLogSettings: {
        destination: new LogGroupLogDestination(log),
        format: AccessLogFormat.custom(
          JSON.stringify({
            at: "$context.requestTime",
            id: "$context.requestId",
            ip: "$context.identity.sourceIp",
            route: "$context.routeKey",
            status: "$context.status",
            ms: "$context.responseLatency",
            error: "$context.error.message",
            integration: "$context.integrationErrorMessage",
          }),
        ),
      },
    });
    const toPager = new HttpLambdaIntegration("Pager", pager.function.lambda);
    const routes = [
      ...this.api.addRoutes({ path: "/slack", methods: [HttpMethod.POST], integration: new HttpLambdaIntegration("Slack", slack.function.lambda) }),
      ...["/pager", "/pager/{source}"].flatMap((path) => this.api.addRoutes({ path, methods: [HttpMethod.POST], integration: toPager })),
    ];
    for (const route of routes)
      accept(route, {
        "AwsSolutions-APIG4":
          "Slack and paging services sign each request, or send a token with it; the function checks that before it takes anything from it.",
      });
    this.url = stage.url.replace(/\/$/, "");
  }
}
