import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.List;
import java.util.Map;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.ApiResponse;
import org.openapitools.client.api.BlueprintsApi;
import org.openapitools.client.api.CoreApi;
import org.openapitools.client.api.ProvidersApi;
import org.openapitools.client.model.*;

/**
 * `Drive URL TOKEN NAME`: applies an application with most fields, then with the required ones alone, without waiting, and a set of
 * two. It lists users and providers.
 */
public class Drive {
  private static final String FLOW = "default-authorization-explicit";

  public static void main(String[] args) throws Exception {
    String name = args[2];
    ApiClient client = new ApiClient();
    client.updateBaseUri(args[0]);
    client.setRequestInterceptor(request -> request.header("Authorization", "Bearer " + args[1]));
    CoreApi core = new CoreApi(client);
    ApiResponse<ApplyResult> first =
        put(core, submission(fullApplication(name), fullProvider(name)), null);
    ApiResponse<ApplyResult> second = put(core, minimal(name), null);
    // The body of a 202 is read as a result that has nothing: the status tells it.
    ApiResponse<ApplyResult> accepted = put(core, minimal(name + "-later"), "respond-async");
    if (first.getStatusCode() != 200 || accepted.getStatusCode() != 202 || accepted.getData().getApplied() != null)
      throw new IllegalStateException("a 202 cannot be told from a 200");
    ApplicationSubmissions submissions =
        new ApplicationSubmissions().submissions(List.of(minimal(name + "-a"), minimal(name + "-b")));
    List<String> set =
        new BlueprintsApi(client)
            .blueprintsUpdate(
                BlueprintsApi.APIBlueprintsUpdateRequest.newBuilder()
                    .blueprintOrSubmissions(new BlueprintOrSubmissions(submissions))
                    .build())
            .getLogs();
    List<List<Object>> providers =
        new ProvidersApi(client)
            .providersAllList(
                ProvidersApi.APIProvidersAllListRequest.newBuilder()
                    .name(name)
                    .ordering(List.of(ProviderOrdering.PROVIDER_ORDERING_NAME_DESC, ProviderOrdering.PROVIDER_ORDERING_PK))
                    .build())
            .getResults().stream()
            .map(ReadProvider::getReadOauth2Provider)
            .map(each -> List.<Object>of(each.getName(), each.getClientType()))
            .toList();
    int users =
        core.coreUsersList(CoreApi.APICoreUsersListRequest.newBuilder().groupsByPk(List.of()).build())
            .getPagination()
            .getCount();
    System.out.println(
        new ObjectMapper()
            .writeValueAsString(
                Map.of(
                    "first", first.getData().getLogs(),
                    "second", second.getData().getLogs(),
                    "accepted", accepted.getHeaders().get("location").get(0),
                    "set", set,
                    "users", users,
                    "providers", providers)));
  }

  private static ApplicationSubmission submission(ApplicationFields app, Oauth2Provider provider) {
    return new ApplicationSubmission(
        new Oauth2Submission()
            .app(app)
            .providerModel(Oauth2Submission.ProviderModelEnum.SERVICE_PROVIDERS_OAUTH2_OAUTH2PROVIDER)
            .provider(provider));
  }

  private static ApplicationSubmission minimal(String name) {
    return submission(
        new ApplicationFields().name(name).slug(name),
        new Oauth2Provider().name(name).authorizationFlow(FLOW));
  }

  private static ApiResponse<ApplyResult> put(CoreApi core, ApplicationSubmission sent, String prefer)
      throws ApiException {
    return core.coreTransactionalApplicationsUpdateWithHttpInfo(
        CoreApi.APICoreTransactionalApplicationsUpdateRequest.newBuilder()
            .applicationSubmission(sent)
            .prefer(prefer)
            .build());
  }

  private static ApplicationFields fullApplication(String name) {
    return new ApplicationFields()
        .name(name)
        .slug(name)
        .openInNewTab(true)
        .metaLaunchUrl("https://wiki.example.com/")
        .metaDescription("Pages of the team")
        .metaPublisher("Example")
        .policyEngineMode(PolicyEngineMode.ALL)
        .group("Documents");
  }

  private static Oauth2Provider fullProvider(String name) {
    return new Oauth2Provider()
        .name(name)
        .authenticationFlow("default-authentication")
        .authorizationFlow(FLOW)
        .invalidationFlow("default-provider-invalidation")
        .addPropertyMappingsItem("gatewright/oauth2/scope-openid")
        .clientType(ClientType.PUBLIC)
        .accessCodeValidity("minutes=5")
        .accessTokenValidity("hours=2")
        .refreshTokenValidity("days=14")
        .includeClaimsInIdToken(false)
        .signingKey("Gatewright self-signed")
        .addRedirectUrisItem(
            new Oauth2ProviderRedirectUrisInner()
                .matchingMode(MatchingMode.STRICT)
                .url("https://wiki.example.com/in"))
        .subMode(SubMode.USER_UUID)
        .issuerMode(IssuerMode.GLOBAL);
  }
}
