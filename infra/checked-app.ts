import { App, type AppProps, Validations } from "aws-cdk-lib";
import { AwsSolutionsChecks, ServerlessChecks } from "cdk-nag";

/** Newer behaviour of the CDK that we rely on: access logs come by a bucket policy, not by an ACL. */
const FLAGS = { "@aws-cdk/aws-s3:serverAccessLogsUseBucketPolicy": true };

/** An app that needs no network, and whose `synth` throws for every finding of cdk-nag that nobody acknowledged. */
export function checkedApp(props: AppProps = {}): App {
  const app = new App({ analyticsReporting: false, ...props, context: { ...FLAGS, ...props.context } });
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app), new ServerlessChecks(app));
  return app;
}
