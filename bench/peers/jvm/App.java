package bench;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** Flowable or Operaton with its REST API and nothing else, as its Spring Boot starter sets it up. */
@SpringBootApplication
public class App {
    public static void main(String[] arguments) {
        SpringApplication.run(App.class, arguments);
    }
}
