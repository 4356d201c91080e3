import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.List;
import java.util.Map;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.CoreApi;
import org.openapitools.client.model.*;

/** `Drive URL TOKEN NAME`: applies an application with most fields, then with the required ones alone, and lists users. */
public class Drive {
  private static final String FLOW = "default-authorization-explicit";

  public static void main(String[] args) throws Exception {
    String name = args[2];
    ApiClient client = new ApiClient();
    client.updateBaseUri(args[0]);
    client.setRequestInterceptor(request -> request.header("Authorization", "Bearer " + args[1]));
    CoreApi core = new CoreApi(client);
    List<String> first = put(core, fullApplication(name), fullProvider(name));
    List<String> second =
        put(
            core,
            new ApplicationFields().name(name).slug(name),
            new Oauth2Provider().name(name).authorizationFlow(FLOW));
    int users =
        core.coreUsersList(CoreApi.APICoreUsersListRequest.newBuilder().groupsByPk(List.of()).build())
            .getPagination()
            .getCount();
    System.out.println(
        new ObjectMapper().writeValueAsString(Map.of("first", first, "second", second, "users", users)));
  }

  private static List<String> put(CoreApi core, ApplicationFields app, Oauth2Provider provider)
      throws ApiException {
    Oauth2Submission body =
        new Oauth2Submission()
            .app(app)
            .providerModel(Oauth2Submission.ProviderModelEnum.SERVICE_PROVIDERS_OAUTH2_OAUTH2PROVIDER)
            .provider(provider);
    return core.coreTransactionalApplicationsUpdate(
            CoreApi.APICoreTransactionalApplicationsUpdateRequest.newBuilder()
                .applicationSubmission(new ApplicationSubmission(body))
                .build())
        .getLogs();
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
